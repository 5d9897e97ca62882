import { STATUS_CODES } from "node:http";
import { expect, test } from "vitest";
import { prepareHeaderFields, maxTimerMs } from "../../../src/http/exchange/index.ts";
import { emptyHead } from "../../../src/engine/http1/request-head.ts";
// oxfmt-ignore
import { formatResponseHead, framingOf, framingOfStream, type Framing, keepAliveLines
} from "../../../src/engine/http1/response-head.ts";

// RFC 9110 has newer phrases for two that node uses.
const renamed: Readonly<Record<number, string>> = { 413: "Content Too Large", 422: "Unprocessable Content" };

// Statuses from proxies, WebDAV and other extensions have no phrase, which is allowed (RFC 9112 §4).
const unnamed = new Set([207, 208, 226, 305, 407, 418, 423, 424, 425, 451, 506, 507, 508, 509, 510, 511]);

test("every status of RFC 9110 has its reason phrase", () => {
  for (let httpStatus = 200; httpStatus < 600; httpStatus++) {
    const phrase = unnamed.has(httpStatus) ? "" : (renamed[httpStatus] ?? STATUS_CODES[httpStatus] ?? "");
    expect(formatResponseHead(httpStatus, [], "none", "")).toBe(`HTTP/1.1 ${httpStatus} ${phrase}\r\n\r\n`);
  }
});

test("connection-specific fields are omitted, regardless of case", () => {
  const fields = ["Connection", "a", "x-connection", "b", "UPGRADE", "c", "upgrade-x", "d", "keep-alive", "e"];
  expect(formatResponseHead(200, [[], fields], 3, "")).toBe(
    "HTTP/1.1 200 OK\r\nx-connection: b\r\nupgrade-x: d\r\ncontent-length: 3\r\n\r\n",
  );
});

test("prepared fields are formatted once", () => {
  const prepared = prepareHeaderFields("a", "b");
  const head = formatResponseHead(200, [prepared], "none", "");
  prepared[1] = "c";
  expect([head, formatResponseHead(200, [prepared], "none", "")]).toEqual(["HTTP/1.1 200 OK\r\na: b\r\n\r\n", head]);
});

test.each([
  { idleTimeoutMs: 1999, seconds: 1 },
  { idleTimeoutMs: Number.POSITIVE_INFINITY, seconds: Math.floor(maxTimerMs / 1000) },
])("keepAliveLines announces $seconds s for an idle timeout of $idleTimeoutMs ms", ({ idleTimeoutMs, seconds }) => {
  expect(keepAliveLines(idleTimeoutMs)).toBe(`connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n`);
});

test.each<{ name: string; httpMethod: string; httpVersion?: "1.0"; httpStatus: number; framing: Framing }>([
  { name: "a stream", httpMethod: "GET", httpStatus: 200, framing: "chunked" },
  { name: "a stream over HTTP/1.0", httpMethod: "GET", httpVersion: "1.0", httpStatus: 200, framing: "close" },
  { name: "a response to HEAD", httpMethod: "HEAD", httpStatus: 200, framing: "none" },
  { name: "a response with status 204", httpMethod: "GET", httpStatus: 204, framing: "none" },
  { name: "a response with status 205", httpMethod: "GET", httpStatus: 205, framing: 0 },
])("$name has the framing $framing on the wire", ({ httpMethod, httpVersion, httpStatus, framing }) => {
  const section = { ...emptyHead.section, httpVersion: httpVersion ?? "1.1" } as const;
  expect(framingOfStream({ ...emptyHead, section, httpMethod }, httpStatus, [])).toBe(framing);
  if (httpStatus !== 200) expect(framingOf(httpStatus, undefined)).toBe(framing);
});
