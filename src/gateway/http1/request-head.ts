import {
  CommonFields,
  type HeaderFields,
  headerTooLarge,
  type HttpProblem,
  httpProblem,
  urlTooLong,
} from "../carriers/index.ts";
import type { Http1Limits } from "./http1-limits.ts";
import type { Incoming } from "./incoming.ts";

/** The head of a request (RFC 9112 §3, §5). */
export interface Http1RequestHead {
  readonly httpMethod: string;
  /** The request target as sent. */
  readonly target: string;
  readonly section: FieldSection;
  /** Why the request cannot be served, nor anything behind it be read. */
  readonly problem: HttpProblem | undefined;
}

/** The header fields of a request, and what they say of its body and its connection. */
export interface FieldSection {
  /** The lines as sent, one character for each byte. */
  readonly lines: string;
  readonly httpVersion: Http1Version;
  readonly fields: HeaderFields;
  readonly common: CommonFields;
  /** Bytes of the body (RFC 9112 §6.3), unless it comes in chunks. */
  readonly bodyBytes: number | "chunked";
  /** Whether the client waits to be told to send the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  /** Whether the client takes further answers on the connection (RFC 9112 §9.3). */
  readonly persistent: boolean;
  readonly problem: HttpProblem | undefined;
}

export type Http1Version = "1.0" | "1.1";

/** Reads the heads of a connection, however they are cut. */
export class HeadReader {
  readonly #limits: Http1Limits;
  #before: FieldSection | undefined;
  #emptyLines = 0;

  constructor(limits: Http1Limits) {
    this.#limits = limits;
  }

  /** Returns the next head, perhaps with a problem; `undefined` while it is not complete. */
  read(incoming: Incoming): Http1RequestHead | undefined {
    // RFC 9112 §2.2: empty lines before a request are ignored.
    for (; incoming.bytes[incoming.at] === cr && incoming.bytes[incoming.at + 1] === lf; this.#emptyLines++) {
      incoming.use(incoming.at + 2);
    }
    if (this.#emptyLines > emptyLinesMax) return unreadable(notHttp());
    const { bytes, at: start } = incoming;
    const end = incoming.findSectionEnd();
    const problem = this.#problem(bytes, start, end);
    if (problem !== undefined) return unreadable(problem);
    if (typeof end === "string") return undefined;
    this.#emptyLines = 0;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const requestLine = bytes.toString("latin1", start, lineEnd);
    const head = readRequestHead(requestLine, bytes.toString("latin1", lineEnd, end), this.#before);
    this.#before = head.section;
    incoming.use(end + 2);
    return head;
  }

  /** Returns why a head is none, or too large, as far as it has arrived. */
  #problem(bytes: Buffer, start: number, end: number | "open" | "broken"): HttpProblem | undefined {
    const { headerBytes, targetBytes } = this.#limits;
    if (end === "broken" || isNoMethod(bytes[start])) return notHttp();
    const length = (end === "open" ? bytes.byteLength : end) - start;
    // The usual case.
    if (length <= Math.min(headerBytes, targetBytes)) return undefined;
    const firstLine = bytes.indexOf(lf, start) - start;
    const lineBytes = firstLine < 0 ? length : firstLine;
    if (length - lineBytes > headerBytes) return headerTooLarge({ headerBytes });
    // Where the end is known, the connection can be kept.
    const isTooLong = end === "open" && lineBytes > targetBytes + requestLineBytes;
    return isTooLong ? urlTooLong({ urlBytes: targetBytes }) : undefined;
  }
}

/** Whether no method begins with the octet; a line feed may follow a carriage return. */
function isNoMethod(octet: number | undefined): boolean {
  return octet !== undefined && octet !== cr && !(octet >= capitalA && octet <= capitalZ);
}

/**
 * Reads a complete head, each line with its end, without the empty one behind them; one character for each byte.
 *
 * @param before - the last section of the connection, which most clients send again with each request
 */
function readRequestHead(requestLine: string, lines: string, before: FieldSection | undefined): Http1RequestHead {
  const line = requestLinePattern.exec(requestLine);
  if (line === null) return unreadable(versionPattern.test(requestLine) ? badVersion() : notHttp());
  const [, httpMethod = "", target = "", minor] = line;
  const httpVersion = minor === "0" ? "1.0" : "1.1";
  const isSame = before !== undefined && before.lines === lines && before.httpVersion === httpVersion;
  const section = isSame ? before : readSection(lines, httpVersion);
  // RFC 9110 §9.3.6: tunnels are for proxies.
  const problem = httpMethod === "CONNECT" ? badTarget() : section.problem;
  return { httpMethod, target, section, problem };
}

/** Returns a head of which nothing is known but its problem. */
export function unreadable(problem: HttpProblem): Http1RequestHead {
  return { ...noHead, problem };
}

function readSection(lines: string, httpVersion: Http1Version): FieldSection {
  const read = readFieldLines(lines);
  const fields = read ?? [];
  const common = new CommonFields(fields);
  const { transferEncoding, contentLength, expect, connection } = common;
  const length = contentLength === null ? 0 : readLength(contentLength);
  return {
    lines,
    httpVersion,
    fields,
    common,
    // RFC 9112 §6.3: with neither field there is no body.
    bodyBytes: transferEncoding === null ? (length ?? 0) : "chunked",
    expectsContinue: expect !== null && httpVersion === "1.1",
    persistent: isPersistent(connection, httpVersion),
    problem: read === undefined || length === undefined ? notHttp() : framingProblem(common, httpVersion),
  };
}

/**
 * Reads field lines, each with its line end, to name, value, name, value, …
 *
 * @returns undefined if one of them is not as RFC 9112 §5 says, or folded as §5.2 forbids
 */
export function readFieldLines(lines: string): HeaderFields | undefined {
  if (!fieldLinesPattern.test(lines)) return undefined;
  const fields: string[] = [];
  let at = 0;
  while (at < lines.length) {
    const colon = lines.indexOf(":", at);
    const end = lines.indexOf("\r\n", colon);
    fields.push(lines.slice(at, colon), trimmed(lines, colon + 1, end));
    at = end + 2;
  }
  return fields;
}

/** Removes the white space around a value (RFC 9110 §5.6.3). `trim` would also take U+00A0, which is a byte of it. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(character: number): boolean {
  return character === 0x20 || character === 0x09;
}

/** Reads a Content-Length; several, joined, are none. */
function readLength(contentLength: string): number | undefined {
  const bytes = contentLengthPattern.test(contentLength) ? Number(contentLength) : Number.NaN;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Returns the problem of a request whose end cannot be determined, or that expects what cannot be met. */
function framingProblem(
  { transferEncoding, contentLength, expect }: CommonFields,
  httpVersion: Http1Version,
): HttpProblem | undefined {
  if (transferEncoding !== null) {
    // RFC 9112 §6.1: whoever sent this does not understand what it forwards.
    if (httpVersion === "1.0") return httpProblem(400, "HTTP/1.0 has no transfer encoding");
    // §6.3: one of both is wrong, perhaps to smuggle a request.
    if (contentLength !== null) return notHttp();
    if (transferEncoding.toLowerCase() !== "chunked") return httpProblem(400, "the transfer encoding is not supported");
  }
  // RFC 9110 §10.1.1: a server ignores what a client of HTTP/1.0 expects.
  if (expect === null || httpVersion === "1.0" || expect.toLowerCase() === "100-continue") return undefined;
  return httpProblem(417, "the expectation cannot be met");
}

function isPersistent(connection: string | null, httpVersion: Http1Version): boolean {
  if (connection === null) return httpVersion === "1.1";
  const options = connection
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
  return !options.includes("close") && (httpVersion === "1.1" || options.includes("keep-alive"));
}

/** Returns the problem of a request that takes too long to arrive. */
export function late(): HttpProblem {
  return httpProblem(408, "the request did not arrive in time");
}

/** Returns the problem of what is no HTTP. */
export function notHttp(): HttpProblem {
  return httpProblem(400, "the request is not valid HTTP");
}

function badTarget(): HttpProblem {
  return httpProblem(400, "the request target is not valid");
}

function badVersion(): HttpProblem {
  return httpProblem(400, "the HTTP version is not supported");
}

const lf = 0x0a;
const cr = 0x0d;
const capitalA = 0x41;
const capitalZ = 0x5a;
/** Empty lines before a request. Old clients send one too many behind a body; more would only keep a connection open. */
const emptyLinesMax = 16;
/** Bytes of a request line beside its target: the longest method that is registered, spaces and version. */
const requestLineBytes = 64;

// RFC 9112 §3: one space each, and a target without white space, control characters or bytes beyond ASCII. Every
// registered method is in upper case (RFC 9110 §16.1.1).
const requestLinePattern = /^([A-Z][A-Z-]*) ([\x21-\x7e]+) HTTP\/1\.([01])\r\n$/;
// The same of another version; HTTP/0.9 has none.
const versionPattern = /^[A-Z][A-Z-]* [\x21-\x7e]+(?: HTTP\/\d\.\d)?\r\n$/;
// RFC 9112 §5, RFC 9110 §5.5 and §5.6.2. No white space before the colon, no folded lines, no control characters.
const fieldLinesPattern = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const contentLengthPattern = /^[0-9]+$/;

/** A head of which nothing is known. */
export const noHead: Http1RequestHead = {
  httpMethod: "",
  target: "/",
  section: readSection("", "1.1"),
  problem: undefined,
};
