import type { Field } from "./case.ts";
import { type HttpResponse, bodyLimitBytes, fieldOf, headerLimitBytes, NoResponse } from "./response.ts";

interface Head {
  readonly status: number;
  readonly header: readonly Field[];
  /** The offset at which the body starts. */
  readonly end: number;
}

/** The received part of a body, and whether the body is complete. */
type Body = { readonly bytes: Buffer; readonly isComplete: boolean };

/**
 * Parses the response to a `method` request (RFC 9112) from all bytes received so far. `isClosed` is true when no more
 * bytes will follow. Returns `undefined` while the response is incomplete. Throws a `NoResponse` if the response is
 * invalid or too large.
 */
export function readHttp1Response(bytes: Buffer, method: string, isClosed: boolean): HttpResponse | undefined {
  let head = readHead(bytes, 0);
  // Skips interim responses (RFC 9110 §15.2), which each attempt to read a response parses again.
  while (head !== undefined && head.status < 200) {
    if (head.end > headerLimitBytes)
      throw new NoResponse("too large", `sent interim responses of more than ${headerLimitBytes} bytes`);
    head = readHead(bytes, head.end);
  }
  if (head === undefined) {
    if (isClosed) throw new NoResponse("closed", "closed the connection before a response");
    return undefined;
  }
  const { status, header } = head;
  const body = readBody(bytes.subarray(head.end), head, method, isClosed);
  if (body.bytes.length > bodyLimitBytes)
    throw new NoResponse("too large", `sent a body of more than ${bodyLimitBytes} bytes`);
  if (!body.isComplete && !isClosed) return undefined;
  return { status, header, body: body.bytes, isComplete: body.isComplete };
}

function readHead(bytes: Buffer, from: number): Head | undefined {
  const end = bytes.indexOf("\r\n\r\n", from);
  const begin = bytes.toString("latin1", from, from + 5);
  if (begin.length === 5 && begin !== "HTTP/")
    throw new NoResponse("not HTTP", `does not speak HTTP: ${JSON.stringify(begin)}`);
  if ((end === -1 ? bytes.length : end) - from > headerLimitBytes) {
    throw new NoResponse("too large", `sent a header of more than ${headerLimitBytes} bytes`);
  }
  if (end === -1) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", from, end).split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined)
    throw new NoResponse("not HTTP", `sent an invalid status line: ${JSON.stringify(statusLine)}`);
  const header = lines.map((line): Field => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new NoResponse("not HTTP", `sent an invalid header line: ${JSON.stringify(line)}`);
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), header, end: end + 4 };
}

// Applies the rules in RFC 9112 §6.3, in the order of the RFC.
function readBody(rest: Buffer, { status, header }: Head, method: string, isClosed: boolean): Body {
  // Returns the bytes after a response without a body, so that a case can check that there are none.
  if (method === "HEAD" || status === 204 || status === 304) return { bytes: rest, isComplete: true };
  if (/(?:^|,)\s*chunked$/i.test(fieldOf(header, "transfer-encoding") ?? "")) return readChunks(rest);
  const announced = fieldOf(header, "content-length");
  if (announced === undefined) return { bytes: rest, isComplete: isClosed };
  if (header.some(([name, value]) => name === "content-length" && value !== announced))
    throw new NoResponse("not HTTP", "sent two different values of Content-Length");
  if (!/^\d+$/.test(announced))
    throw new NoResponse("not HTTP", `sent an invalid Content-Length: ${JSON.stringify(announced)}`);
  return { bytes: rest.subarray(0, Number(announced)), isComplete: rest.length >= Number(announced) };
}

function readChunks(rest: Buffer): Body {
  const chunks: Buffer[] = [];
  let at = 0;
  while (true) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd === -1) return { bytes: Buffer.concat(chunks), isComplete: false };
    const size = /^([0-9a-f]{1,8})(?:[ \t;]|$)/i.exec(rest.toString("latin1", at, lineEnd))?.[1];
    if (size === undefined) throw new NoResponse("not HTTP", "sent an invalid chunk");
    const length = Number.parseInt(size, 16);
    if (length === 0) return { bytes: Buffer.concat(chunks), isComplete: true };
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
    if (at > rest.length) return { bytes: Buffer.concat(chunks), isComplete: false };
  }
}
