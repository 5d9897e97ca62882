import type { Field } from "./case.ts";
import { type Answer, bodyLimitBytes, fieldOf, headerLimitBytes, NoAnswer } from "./answer.ts";

interface Head {
  readonly status: number;
  readonly header: readonly Field[];
  /** Where the body begins. */
  readonly end: number;
}

/** The body so far, and whether more is to come. */
interface Body {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

/**
 * Reads the answer to a request of `method` (RFC 9112) from all bytes that have come so far; `hasEnded` when no more
 * will. Returns `undefined` as long as it takes more. Throws a `NoAnswer` when it is none or too large.
 */
export function readHttp1Answer(bytes: Buffer, method: string, hasEnded: boolean): Answer | undefined {
  let head = readHead(bytes, 0);
  // Interim answers come before the one that counts (RFC 9110 §15.2). They are read again with all that follows.
  while (head !== undefined && head.status < 200) {
    if (head.end > headerLimitBytes) throw new NoAnswer("too large", "does not stop to answer");
    head = readHead(bytes, head.end);
  }
  if (head === undefined) {
    if (hasEnded) throw new NoAnswer("closed", "closed the connection before an answer");
    return undefined;
  }
  const { status, header } = head;
  const body = readBody(bytes.subarray(head.end), head, method, hasEnded);
  if (body.bytes.length > bodyLimitBytes)
    throw new NoAnswer("too large", `answered with more than ${bodyLimitBytes} bytes`);
  if (!body.isWhole && !hasEnded) return undefined;
  return { status, header, body: body.bytes, isWhole: body.isWhole };
}

function readHead(bytes: Buffer, from: number): Head | undefined {
  const end = bytes.indexOf("\r\n\r\n", from);
  const begin = bytes.toString("latin1", from, from + 5);
  if (begin.length === 5 && begin !== "HTTP/")
    throw new NoAnswer("not HTTP", `does not speak HTTP: ${JSON.stringify(begin)}`);
  if ((end === -1 ? bytes.length : end) - from > headerLimitBytes) {
    throw new NoAnswer("too large", `sent a header of more than ${headerLimitBytes} bytes`);
  }
  if (end === -1) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", from, end).split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined) throw new NoAnswer("not HTTP", `sent a bad status line: ${JSON.stringify(statusLine)}`);
  const header = lines.map((line): Field => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new NoAnswer("not HTTP", `sent a bad header line: ${JSON.stringify(line)}`);
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), header, end: end + 4 };
}

// RFC 9112 §6.3, in its order.
function readBody(rest: Buffer, { status, header }: Head, method: string, hasEnded: boolean): Body {
  // What follows is none of the answer, but a case can see that it came.
  if (method === "HEAD" || status === 204 || status === 304) return { bytes: rest, isWhole: true };
  if (/(?:^|,)\s*chunked$/i.test(fieldOf(header, "transfer-encoding") ?? "")) return readChunks(rest);
  const announced = fieldOf(header, "content-length");
  if (announced === undefined) return { bytes: rest, isWhole: hasEnded };
  if (header.some(([name, value]) => name === "content-length" && value !== announced))
    throw new NoAnswer("not HTTP", "announced two lengths");
  if (!/^\d+$/.test(announced)) throw new NoAnswer("not HTTP", `announced a length of ${JSON.stringify(announced)}`);
  return { bytes: rest.subarray(0, Number(announced)), isWhole: rest.length >= Number(announced) };
}

function readChunks(rest: Buffer): Body {
  const chunks: Buffer[] = [];
  let at = 0;
  while (true) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd === -1) return { bytes: Buffer.concat(chunks), isWhole: false };
    const size = /^([0-9a-f]{1,8})(?:[ \t;]|$)/i.exec(rest.toString("latin1", at, lineEnd))?.[1];
    if (size === undefined) throw new NoAnswer("not HTTP", "sent a bad chunk");
    const length = Number.parseInt(size, 16);
    if (length === 0) return { bytes: Buffer.concat(chunks), isWhole: true };
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
    if (at > rest.length) return { bytes: Buffer.concat(chunks), isWhole: false };
  }
}
