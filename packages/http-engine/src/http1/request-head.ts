import {
  CommonHeaderFields,
  expectationProblem,
  type HeaderFields,
  headerTooLarge,
  HttpProblem,
  type Limits,
  notHttp,
  type RememberedFields,
  transferEncodingProblem,
  urlTooLong,
} from "@plantstore/gateway/exchange";
import type { Incoming } from "./incoming.ts";

/** The head of a request (RFC 9112 §3, §5). */
export interface Http1RequestHead {
  readonly httpMethod: string;
  /** The request target as sent. */
  readonly target: string;
  readonly section: FieldSection;
  /** Why the request is refused, and nothing after it read; `undefined` if it is not. */
  readonly problem: HttpProblem | undefined;
}

/** The header fields of a request, and what they say about its body and its connection. */
export interface FieldSection {
  readonly httpVersion: Http1Version;
  readonly fields: RememberedFields;
  readonly common: CommonHeaderFields;
  /** Bytes of the body (RFC 9112 §6.3), unless it comes in chunks. */
  readonly bodyBytes: number | "chunked";
  /** Whether the client waits to be told to send the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  /** Whether the client may send further requests on the connection (RFC 9112 §9.3). */
  readonly persistent: boolean;
  readonly problem: HttpProblem | undefined;
}

/** The versions of HTTP/1 by their numbers. */
export type Http1Version = "1.0" | "1.1";

/** Reads the heads of a connection, however they are split. */
export class HeadReader {
  readonly #limits: Limits;
  /** The last section of the connection, unless it is long: most clients send it again with each request. */
  #before: FieldSection | undefined;
  /** Its bytes as they were sent, with the empty line that ends it. */
  #bytes: Buffer = none;
  /** The buffer that these are in. */
  #room: Buffer = none;
  #emptyLines = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Returns the next head, perhaps with a problem; `undefined` while it is not complete. */
  read(incoming: Incoming): Http1RequestHead | undefined {
    // RFC 9112 §2.2: empty lines before a request are ignored.
    for (; incoming.bytes[incoming.at] === cr && incoming.bytes[incoming.at + 1] === lf; this.#emptyLines++) {
      incoming.consume(incoming.at + 2);
    }
    if (this.#emptyLines > emptyLinesMax) return invalidHead(notHttp());
    return this.#readAgain(incoming) ?? this.#readNew(incoming);
  }

  /**
   * Returns the next head if its section is, byte for byte, the one before. Whose request it is depends on that: nothing
   * less than all of its bytes may be compared.
   */
  #readAgain(incoming: Incoming): Http1RequestHead | undefined {
    const before = this.#before;
    if (before === undefined) return undefined;
    const { bytes, at: start } = incoming;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const end = lineEnd + this.#bytes.byteLength;
    if (end > bytes.byteLength || this.#bytes.compare(bytes, lineEnd, end) !== 0) return undefined;
    const line = readRequestLine(bytes.toString("latin1", start, lineEnd));
    if (line === undefined || line.httpVersion !== before.httpVersion) return undefined;
    incoming.consume(end);
    this.#emptyLines = 0;
    return toHead(line, before);
  }

  #readNew(incoming: Incoming): Http1RequestHead | undefined {
    const { bytes, at: start } = incoming;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const end = incoming.consumeSection();
    const problem = this.#problem(bytes, start, lineEnd, end);
    if (problem !== undefined) return invalidHead(problem);
    if (typeof end === "string") return undefined;
    this.#emptyLines = 0;
    const requestLine = bytes.toString("latin1", start, lineEnd);
    const line = readRequestLine(requestLine);
    if (line === undefined) return invalidHead(versionPattern.test(requestLine) ? badVersion() : notHttp());
    const section = readSection(bytes.toString("latin1", lineEnd, end), line.httpVersion);
    const isSmall = end - lineEnd <= keptLinesMax && section.fields.length <= 2 * keptFieldsMax;
    if (isSmall) this.#keep(section, bytes.subarray(lineEnd, end + emptyLineBytes));
    return toHead(line, section);
  }

  #keep(section: FieldSection, bytes: Buffer): void {
    if (bytes.byteLength > this.#room.byteLength) this.#room = Buffer.allocUnsafeSlow(bytes.byteLength);
    this.#before = section;
    this.#bytes = this.#room.subarray(0, bytes.byteLength);
    this.#bytes.set(bytes);
  }

  /** Returns the problem of a head as far as it has arrived: it is not HTTP, or it is too large. */
  #problem(bytes: Buffer, start: number, lineEnd: number, end: number | "open" | "broken"): HttpProblem | undefined {
    const { headerBytes, urlBytes } = this.#limits;
    if (end === "broken" || isNoMethod(bytes[start])) return notHttp();
    const length = (end === "open" ? bytes.byteLength : end) - start;
    const lineBytes = lineEnd === 0 ? length : lineEnd - start;
    if (length - lineBytes > headerBytes) return headerTooLarge(this.#limits);
    // A head whose end is known can be refused without ending the connection.
    const isTooLong = end === "open" && lineBytes > urlBytes + requestLineBytes;
    return isTooLong ? urlTooLong(this.#limits) : undefined;
  }
}

/** Returns whether no request can begin with the octet. A carriage return may begin an empty line. */
function isNoMethod(octet: number | undefined): boolean {
  return octet !== undefined && octet !== cr && !(octet >= capitalA && octet <= capitalZ);
}

/** The first line of a request (RFC 9112 §3). */
interface RequestLine {
  readonly httpMethod: string;
  readonly target: string;
  readonly httpVersion: Http1Version;
}

/** Reads a request line with its end, one character for each byte; `undefined` if it is none. */
function readRequestLine(text: string): RequestLine | undefined {
  if (!requestLinePattern.test(text)) return undefined;
  const methodEnd = text.indexOf(" ");
  const versionAt = text.length - versionLength;
  const method = text.slice(0, methodEnd);
  return {
    httpMethod: usualMethods[usualMethods.indexOf(method)] ?? method,
    target: text.slice(methodEnd + 1, versionAt),
    // RFC 9110 §2.5: a later minor version is read as the highest one that is known.
    httpVersion: text.startsWith("0", versionAt + " HTTP/1.".length) ? "1.0" : "1.1",
  };
}

function toHead({ httpMethod, target }: RequestLine, section: FieldSection): Http1RequestHead {
  // RFC 9110 §9.3.6: tunnels are for proxies.
  const problem = httpMethod === "CONNECT" ? badTarget() : section.problem;
  return { httpMethod, target, section, problem };
}

/** The usual methods as shared strings: otherwise each waiting request would hold a copy of its own. */
const usualMethods: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Returns a head of which only its problem is known. */
export function invalidHead(problem: HttpProblem): Http1RequestHead {
  return { ...emptyHead, problem };
}

function readSection(lines: string, httpVersion: Http1Version): FieldSection {
  const read = readFieldLines(lines);
  const fields = read ?? [];
  const common = new CommonHeaderFields(fields);
  const { transferEncoding, contentLength, expect, connection } = common;
  const length = contentLength === null ? 0 : readLength(contentLength);
  return {
    httpVersion,
    fields,
    common,
    // RFC 9112 §6.3: with neither field there is no body.
    bodyBytes: transferEncoding === null ? (length ?? 0) : "chunked",
    expectsContinue: expect !== null && httpVersion === "1.1",
    persistent: isPersistent(connection, httpVersion),
    problem:
      read === undefined || length === undefined || endsCodingInTab(transferEncoding, lines)
        ? notHttp()
        : framingProblem(common, httpVersion),
  };
}

/**
 * Whether a tab stands behind the value of Transfer-Encoding. RFC 9110 §5.6.3 allows it; node's parser and others refuse
 * it, and servers that disagree about where a body ends can be used to smuggle requests (RFC 9112 §11.2).
 */
function endsCodingInTab(transferEncoding: string | null, lines: string): boolean {
  return transferEncoding !== null && /^transfer-encoding:[^\r]*\t *\r$/im.test(lines);
}

/**
 * Reads field lines, each with its line end, into name, value, name, value, …
 *
 * @returns `undefined` if a line does not follow RFC 9112 §5, or is folded, which §5.2 forbids
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

/** Removes the white space around a value (RFC 9110 §5.6.3). `trim` would also remove U+00A0, part of the value. */
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

/** Reads a Content-Length; `undefined` if it is not one, such as several fields joined by commas. */
function readLength(contentLength: string): number | undefined {
  const bytes = contentLengthPattern.test(contentLength) ? Number(contentLength) : Number.NaN;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Returns the problem of a request whose end cannot be determined, or whose expectation cannot be met. */
function framingProblem(
  { transferEncoding, contentLength, expect }: CommonHeaderFields,
  httpVersion: Http1Version,
): HttpProblem | undefined {
  if (transferEncoding !== null) {
    // RFC 9112 §6.3: one of the two is wrong, perhaps in order to smuggle a request.
    if (contentLength !== null) return notHttp();
    const problem = transferEncodingProblem(transferEncoding, httpVersion);
    if (problem !== undefined) return problem;
  }
  return expect === null ? undefined : expectationProblem(expect, httpVersion);
}

function isPersistent(connection: string | null, httpVersion: Http1Version): boolean {
  if (connection === null) return httpVersion === "1.1";
  const options = connection
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
  return !options.includes("close") && (httpVersion === "1.1" || options.includes("keep-alive"));
}

function badTarget(): HttpProblem {
  return new HttpProblem("ERR_HTTP_INVALID", "the request target is not valid");
}

function badVersion(): HttpProblem {
  return new HttpProblem("ERR_HTTP_UNSUPPORTED", "the HTTP version is not supported");
}

const lf = 0x0a;
const cr = 0x0d;
const capitalA = 0x41;
const capitalZ = 0x5a;
/** The longest field lines that are kept for the next request, in bytes: a connection may be idle for long. */
// Of browsers and of JWTs, most are shorter; to read longer ones each time costs a few microseconds.
const keptLinesMax = 4 * 1024;
/** The most fields that are kept: of small ones, each takes ten times its bytes. Clients and proxies send some 30. */
const keptFieldsMax = 64;
/** The most empty lines before a request. Old clients send one after a body; endless ones keep the connection open. */
const emptyLinesMax = 16;
const emptyLineBytes = 2;
const none = Buffer.alloc(0);
/** Bytes of a request line besides its target: the longest registered method, spaces and version. */
const requestLineBytes = 64;

// RFC 9112 §3: one space each, and a target without white space, control characters or bytes beyond ASCII. Every
// registered method is in upper case (RFC 9110 §16.1.1), and none is longer than 17 characters.
const requestLinePattern = /^[A-Z][A-Z-]{0,31} [\x21-\x7e]+ HTTP\/1\.\d\r\n$/;
const versionLength = " HTTP/1.1\r\n".length;
// The same with another version of HTTP, or with none, as in HTTP/0.9.
const versionPattern = /^[A-Z][A-Z-]{0,31} [\x21-\x7e]+(?: HTTP\/\d\.\d)?\r\n$/;
// RFC 9112 §5, RFC 9110 §5.5 and §5.6.2. No white space before the colon, no folded lines, no control characters.
const fieldLinesPattern = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const contentLengthPattern = /^[0-9]+$/;

/** A head of which nothing is known. */
export const emptyHead: Http1RequestHead = {
  httpMethod: "",
  target: "/",
  section: readSection("", "1.1"),
  problem: undefined,
};
