import { expect, test, vi } from "vitest";
import { defaultLimits, freeBuffer, type HttpProblem, detachFromChunk } from "../../../src/http/exchange/index.ts";
import type { Http1RequestHead } from "../../../src/engine/http1/request-head.ts";
import { Http1RequestReader } from "../../../src/engine/http1/request-reader.ts";

function readerWith(callbacks: Partial<ConstructorParameters<typeof Http1RequestReader>[1]>): Http1RequestReader {
  const ignored = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
  return new Http1RequestReader(defaultLimits, { ...ignored, ...callbacks }, { congested: false });
}

/** Returns a reader that stops at an error, and the pieces, ends and errors that it reports. */
function recording(): { readonly reader: Http1RequestReader; readonly events: readonly string[] } {
  const events: string[] = [];
  const reader = readerWith({
    onPiece: (piece) => events.push(piece.toString()) === 0,
    onBodyEnd: () => void events.push("end"),
    onRequestError: () => {
      events.push("error");
      reader.stop();
    },
  });
  return { reader, events };
}

test("stop() drops the unread bytes", () => {
  const reader = readerWith({});
  reader.read(Buffer.from("GET / HTTP/1.1\r\n"));
  expect(reader.incoming.unusedBytes).toBe(16);
  reader.stop();
  expect(reader.incoming.unusedBytes).toBe(0);
});

test("an incomplete head is copied from its chunk, even a single byte", () => {
  const reader = readerWith({});
  const chunk = Buffer.from("G");
  reader.read(chunk);
  chunk.fill(0);
  expect(reader.incoming.bytes.toString()).toBe("G");
});

test("a repeated head is parsed once, even after a longer head", () => {
  const sections: unknown[] = [];
  const onHead = ({ section }: Http1RequestHead): void => void sections.push(section);
  const reader = readerWith({ onHead });
  for (const host of ["orders.example", "x", "x"]) {
    reader.read(Buffer.from(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`));
    reader.next();
  }
  expect(sections.map((section) => sections.indexOf(section))).toEqual([0, 1, 1]);
});

test("an incomplete request line longer than urlBytes + 64 is refused", () => {
  const refused = [0, 1].map((more) => {
    let heads = 0;
    const reader = readerWith({ onHead: () => void heads++ });
    reader.read(Buffer.from("M".repeat(32) + " /".padEnd(defaultLimits.urlBytes + 32 + more, "7")));
    return heads;
  });
  expect(refused).toEqual([0, 1]);
});

test("a method must start with a capital letter", () => {
  const results = Array.from("@AZ[", (letter) => {
    const problems: (HttpProblem | undefined)[] = [];
    const onHead = ({ problem }: Http1RequestHead): void => void problems.push(problem);
    const reader = readerWith({ onHead });
    reader.read(Buffer.from(letter));
    const isRefused = problems.length > 0;
    if (!isRefused) reader.read(Buffer.from(" / HTTP/1.1\r\n\r\n"));
    return isRefused ? "refused immediately" : problems;
  });
  expect(results).toEqual(["refused immediately", [undefined], [undefined], "refused immediately"]);
});

test("a chunk size has hexadecimal digits of either case", () => {
  const { reader, events } = recording();
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"));
  for (const size of ["A", "a", "0C"]) reader.read(Buffer.from(`${size}\r\n${"x".repeat(parseInt(size, 16))}\r\n`));
  reader.read(Buffer.from("0\r\n\r\n"));
  expect(events).toEqual(["x".repeat(10), "x".repeat(10), "x".repeat(12), "end"]);
});

test("a chunk extension split between reads is counted only once", () => {
  const { reader, events } = recording();
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"));
  for (const text of [`5;${"x".repeat(9_000)}`, "x", "\r", "\norder\r\n0\r\n\r\n"]) reader.read(Buffer.from(text));
  expect(events).toEqual(["order", "end"]);
});

test("a body's chunk extensions are limited to 16 KiB in total", () => {
  const { reader, events } = recording();
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"));
  for (const [at, bytes] of [8_190, 8_192, 2, 2].entries())
    reader.read(Buffer.from(`1;${"x".repeat(bytes - 1)}\r\n${at}\r\n`));
  expect(events).toEqual(["0", "1", "2", "error"]);
});

test("transferring a body's memory does not affect the next request", () => {
  const reader = readerWith({ onPiece: transfer });
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\n"));
  reader.read(Buffer.from("content-length: 3\r\n\r\nabcGET / HT"));
  expect(reader.incoming.bytes.toString()).toBe("GET / HT");
});

test("read() returns whether onPiece has kept a view of the chunk", () => {
  const reader = readerWith({ onPiece: isKept });
  const chunks = ["POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"];
  chunks.push("1\r\nk\r\n1\r\nd\r\n", "1\r\nd\r\n");
  expect(chunks.map((chunk) => reader.read(Buffer.from(chunk)))).toEqual([false, true, false]);
});

test("field sections of at most 4 KiB and 64 fields share one cache", () => {
  const reader = readerWith({});
  using allocations = vi.spyOn(Buffer, "allocUnsafeSlow");
  const read = (lines: string): void => {
    reader.read(Buffer.from(`GET / HTTP/1.1\r\nhost: x\r\n${lines}\r\n`));
    reader.next();
  };
  for (const fields of [64, 63]) read("a: b\r\n".repeat(fields));
  for (const [nth, bytes] of [4096, 4097, 100, 4096].entries()) read(`a: ${String(nth).repeat(bytes - 14)}\r\n`);
  // Includes the empty line.
  expect(allocations.mock.calls).toEqual([[9 + 63 * 6 + 2], [4098]]);
});

function transfer(piece: Uint8Array): boolean {
  freeBuffer(detachFromChunk(piece).buffer);
  return true;
}

function isKept(piece: Buffer): boolean {
  return piece.includes("k");
}
