import { expect, test } from "vitest";
import { renderHttp1 } from "../../../../protoport/tools/record-responses/http1.ts";
import { renderBytes } from "../../../../protoport/tools/record-responses/render.ts";

const head = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
const shownHead = "HTTP/1.1 200 OK\ndate: (masked)\n";

test.each([
  { name: "a body as its bytes", sent: `${head}\r\n{}`, want: `${shownHead}\n{}\n` },
  {
    name: "chunks as a single chunk, then the trailer section",
    sent: `${head}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nx: y\r\n\r\n`,
    want: `${shownHead}transfer-encoding: chunked\n\n(chunks) abc\n0\\x0d\nx: y\\x0d\n\\x0d\n\n`,
  },
  {
    name: "an interim response before the final response",
    sent: `HTTP/1.1 100 Continue\r\n\r\n${head}\r\n`,
    want: `HTTP/1.1 100 Continue\n\n${shownHead}\n\n`,
  },
  { name: "bytes that are not a response unchanged", sent: "HTTP/1.1 2", want: "HTTP/1.1 2\n" },
  { name: "an empty response as an empty string", sent: "", want: "" },
])("the recorder renders $name", ({ sent, want }) => {
  expect(renderHttp1(Buffer.from(sent))).toBe(want);
});

test("the recorder renders each byte value as a different string", () => {
  const rendered = Array.from({ length: 256 }, (_, byte) => renderBytes(Uint8Array.of(byte)));
  expect(new Set(rendered).size).toBe(256);
  expect(renderBytes(Buffer.from("\\x00"))).not.toBe(renderBytes(Buffer.from("\0")));
});

test("the recorder renders long bodies that differ only at the end differently", () => {
  const long = Buffer.alloc(10_000, "a");
  expect(renderBytes(Buffer.concat([long, Buffer.from("b")]))).not.toBe(
    renderBytes(Buffer.concat([long, Buffer.from("c")])),
  );
});
