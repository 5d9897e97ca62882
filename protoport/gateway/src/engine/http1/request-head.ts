import {
  CommonHeaderFields,
  type HeaderFields,
  headerTooLargeProblem,
  HttpProblem,
  type Limits,
  type CachedFields,
  transferEncodingProblem,
  urlTooLongProblem,
} from "../../http/index.ts";
import { expectationProblem, invalidHttpProblem, longMethodProblem, unsupportedVersionProblem } from "./problems.ts";
import type { Incoming } from "./incoming.ts";

/** A request's head (RFC 9112 §3, §5). */
export interface Http1RequestHead {
  readonly httpMethod: string;
  /** The request target as sent. */
  readonly target: string;
  readonly section: FieldSection;
  /** Why the request is refused and the connection closed, or `undefined` if the request is valid. */
  readonly problem: HttpProblem | undefined;
}

/** A request's header fields, framing and connection options. */
interface FieldSection {
  readonly httpVersion: Http1Version;
  readonly fields: CachedFields;
  readonly common: CommonHeaderFields;
  /** Number of bytes in the body, or "chunked" (RFC 9112 §6.3). */
  readonly bodyBytes: number | "chunked";
  /** Whether the client waits for 100 Continue before sending the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  /** Whether the client may send further requests on the connection (RFC 9112 §9.3). */
  readonly persistent: boolean;
  readonly problem: HttpProblem | undefined;
}

/** The HTTP/1 versions that the engine supports. */
type Http1Version = "1.0" | "1.1";

/** Reads the request heads on a connection, even if the socket splits heads anywhere. */
export class HeadReader {
  readonly #limits: Limits;
  /** The last field section that was short enough to cache. Most clients repeat the section in each request. */
  #previous: FieldSection | undefined;
  /** The bytes of `#previous` as sent, including the empty line. */
  #bytes: Buffer = noBytes;
  #buffer: Buffer = noBytes;
  #emptyLines = 0;
  #isRepeated = false;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Returns the next request head, possibly with a problem, or `undefined` while the head is incomplete. */
  read(incoming: Incoming): Http1RequestHead | undefined {
    // Empty lines before a request are ignored (RFC 9112 §2.2).
    for (; incoming.bytes[incoming.at] === cr && incoming.bytes[incoming.at + 1] === lf; this.#emptyLines++) {
      incoming.consume(incoming.at + 2);
    }
    if (this.#emptyLines > maxEmptyLines) return invalidHead(invalidHttpProblem(), incoming);
    return this.#readRepeatedHead(incoming) ?? this.#parseHead(incoming);
  }

  // Reuses the cached field section if all bytes are equal. A partial comparison could confuse credentials.
  #readRepeatedHead(incoming: Incoming): Http1RequestHead | undefined {
    const previous = this.#previous;
    if (previous === undefined) return undefined;
    const { bytes, at: start } = incoming;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const end = lineEnd + this.#bytes.byteLength;
    if (end > bytes.byteLength || this.#bytes.compare(bytes, lineEnd, end) !== 0) return undefined;
    const line = readRequestLine(bytes.toString("latin1", start, lineEnd));
    if (line === undefined || line.httpVersion !== previous.httpVersion) return undefined;
    incoming.consume(end);
    this.#emptyLines = 0;
    return toHttp1Head(line, previous);
  }

  #parseHead(incoming: Incoming): Http1RequestHead | undefined {
    const { bytes, at: start } = incoming;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const end = incoming.consumeSection();
    const problem = this.#problem(bytes, start, lineEnd, end);
    if (problem !== undefined) return invalidHead(problem, { bytes, at: start });
    if (typeof end === "string") return undefined;
    this.#emptyLines = 0;
    const requestLine = bytes.toString("latin1", start, lineEnd);
    const line = readRequestLine(requestLine);
    if (line === undefined) return invalidHead(requestLineProblem(requestLine), { bytes, at: start });
    const section = readSection(bytes.toString("latin1", lineEnd, end), line.httpVersion);
    const isSmall = end - lineEnd <= maxCachedSectionBytes && section.fields.length <= 2 * maxCachedFields;
    // Many connections have one request, so the cache starts with the second.
    if (isSmall && this.#isRepeated) this.#cache(section, bytes.subarray(lineEnd, end + emptyLineBytes));
    this.#isRepeated = true;
    return toHttp1Head(line, section);
  }

  #cache(section: FieldSection, bytes: Buffer): void {
    if (bytes.byteLength > this.#buffer.byteLength) this.#buffer = Buffer.allocUnsafeSlow(bytes.byteLength);
    this.#previous = section;
    this.#bytes = this.#buffer.subarray(0, bytes.byteLength);
    this.#bytes.set(bytes);
  }

  /** Returns a problem if the head, which may be incomplete, is too large or not HTTP. */
  #problem(bytes: Buffer, start: number, lineEnd: number, end: number | "open" | "invalid"): HttpProblem | undefined {
    const { headerBytes, urlBytes } = this.#limits;
    if (end === "invalid" || cannotStartRequest(bytes[start])) return invalidHttpProblem();
    const length = (end === "open" ? bytes.byteLength : end) - start;
    const lineBytes = lineEnd === 0 ? length : lineEnd - start;
    if (length - lineBytes > headerBytes) return headerTooLargeProblem(this.#limits);
    // A complete head with a long URL is refused later, without closing the connection.
    if (end !== "open" || lineBytes <= urlBytes + requestLineBytes) return undefined;
    return (
      longMethodProblem(bytes.toString("latin1", start, start + requestLineBytes)) ?? urlTooLongProblem(this.#limits)
    );
  }
}

/** Returns whether the octet cannot start a request. A CR may start an empty line. */
function cannotStartRequest(octet: number | undefined): boolean {
  return octet !== undefined && octet !== cr && !(octet >= capitalA && octet <= capitalZ);
}

/** A request line (RFC 9112 §3). */
interface RequestLine {
  readonly httpMethod: string;
  readonly target: string;
  readonly httpVersion: Http1Version;
}

/** Parses a request line with its CR LF, one character per byte. Returns `undefined` if the line is not valid. */
function readRequestLine(text: string): RequestLine | undefined {
  if (!requestLinePattern.test(text)) return undefined;
  const methodEnd = text.indexOf(" ");
  const versionAt = text.length - versionLength;
  const method = text.slice(0, methodEnd);
  return {
    httpMethod: knownMethods[knownMethods.indexOf(method)] ?? method,
    target: text.slice(methodEnd + 1, versionAt),
    // A minor version above 1 is processed as HTTP/1.1 (RFC 9110 §2.5).
    httpVersion: text.startsWith("0", versionAt + " HTTP/1.".length) ? "1.0" : "1.1",
  };
}

function requestLineProblem(line: string): HttpProblem {
  return longMethodProblem(line) ?? (versionPattern.test(line) ? unsupportedVersionProblem() : invalidHttpProblem());
}

function toHttp1Head({ httpMethod, target }: RequestLine, section: FieldSection): Http1RequestHead {
  // Only proxies support CONNECT (RFC 9110 §9.3.6).
  const problem = httpMethod === "CONNECT" ? invalidTargetProblem() : section.problem;
  return { httpMethod, target, section, problem };
}

/** Shared strings for common methods, so that pending requests need no copies of the method. */
const knownMethods: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/**
 * Returns a head with a problem. The head has the Origin field, so that CORS lets a page read the error response.
 *
 * @param incoming - begins with the received part of the head
 */
export function invalidHead(problem: HttpProblem, { bytes, at }: Pick<Incoming, "bytes" | "at">): Http1RequestHead {
  const line = originLineIn(bytes.toString("latin1", at));
  return line === "" ? { ...emptyHead, problem } : { ...emptyHead, section: readSection(line, "1.1"), problem };
}

/** Returns the line with the Origin field, or `""` if the client sent none. */
function originLineIn(lines: string): string {
  return originLine.exec(lines)?.[0] ?? "";
}

function readSection(lines: string, httpVersion: Http1Version): FieldSection {
  const read = readFieldLines(lines);
  const fields = read ?? readFieldLines(originLineIn(lines)) ?? [];
  const common = new CommonHeaderFields(fields);
  const { transferEncoding, contentLength, expect, connection } = common;
  const length = contentLength === null ? 0 : parseLength(contentLength);
  return {
    httpVersion,
    fields,
    common,
    // A request has no body if it has neither Transfer-Encoding nor Content-Length (RFC 9112 §6.3).
    bodyBytes: transferEncoding === null ? (length ?? 0) : "chunked",
    expectsContinue: expect !== null && httpVersion === "1.1",
    persistent: isPersistent(connection, httpVersion),
    problem:
      read === undefined || length === undefined || hasTabAfterTransferEncoding(transferEncoding, lines)
        ? invalidHttpProblem()
        : framingProblem(common, httpVersion),
  };
}

// Whether Transfer-Encoding ends in a tab, which RFC 9110 §5.6.3 allows, but node's parser and others reject. Servers
// that disagree where a body ends allow request smuggling (RFC 9112 §11.2).
function hasTabAfterTransferEncoding(transferEncoding: string | null, lines: string): boolean {
  return transferEncoding !== null && /^transfer-encoding:[^\r]*\t *\r$/im.test(lines);
}

/**
 * Parses field lines that end in CR LF. Returns name, value, name, value, …
 *
 * @returns `undefined` if a line does not follow RFC 9112 §5. RFC 9112 §5.2 forbids folded lines
 */
export function readFieldLines(lines: string): HeaderFields | undefined {
  if (!fieldLinesPattern.test(lines)) return undefined;
  const fields: string[] = [];
  let at = 0;
  while (at < lines.length) {
    const colon = lines.indexOf(":", at);
    const end = lines.indexOf("\r\n", colon);
    fields.push(lines.slice(at, colon), trimWhitespace(lines, colon + 1, end));
    at = end + 2;
  }
  return fields;
}

// Removes spaces and tabs (RFC 9110 §5.6.3). `trim` would also remove U+00A0, which is part of the value.
function trimWhitespace(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isWhitespace(character: number): boolean {
  return character === 0x20 || character === 0x09;
}

/** Parses a Content-Length value. Returns `undefined` for an invalid value, such as several values joined by commas. */
function parseLength(contentLength: string): number | undefined {
  const bytes = contentLengthPattern.test(contentLength) ? Number(contentLength) : Number.NaN;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

function framingProblem(
  { transferEncoding, contentLength, expect }: CommonHeaderFields,
  httpVersion: Http1Version,
): HttpProblem | undefined {
  if (transferEncoding !== null) {
    // A request with Transfer-Encoding and Content-Length may be a request smuggling attempt (RFC 9112 §6.3).
    if (contentLength !== null) return invalidHttpProblem();
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

function invalidTargetProblem(): HttpProblem {
  return new HttpProblem("ERR_HTTP_INVALID", "the request target is not valid");
}

const lf = 0x0a;
const cr = 0x0d;
const capitalA = 0x41;
const capitalZ = 0x5a;
// Maximum number of bytes in a cached field section, which stays in memory while the connection is idle. Most sections
// from browsers or with JWTs are shorter. Parsing a longer section again costs a few microseconds.
const maxCachedSectionBytes = 4 * 1024;
// Maximum number of fields in a cached section. Small fields take ten times their size in memory. 30 fields are usual.
const maxCachedFields = 64;
/** Maximum number of empty lines before a request. Old clients send an empty line after a body. */
const maxEmptyLines = 16;
const emptyLineBytes = 2;
const noBytes = Buffer.alloc(0);
/** Maximum number of bytes in a request line without its target: method, spaces and version. */
const requestLineBytes = 64;

// Single spaces separate method, target and version. The target has no white space, control characters or non-ASCII
// bytes (RFC 9112 §3). Every registered method is in upper case (RFC 9110 §16.1.1) and has at most 17 characters.
const requestLinePattern = /^[A-Z][A-Z-]{0,31} [\x21-\x7e]+ HTTP\/1\.\d\r\n$/;
const versionLength = " HTTP/1.1\r\n".length;
// Matches a request line with another HTTP version, or without a version, as in HTTP/0.9.
const versionPattern = /^[A-Z][A-Z-]{0,31} [\x21-\x7e]+(?: HTTP\/\d\.\d)?\r\n$/;
// RFC 9112 §5, RFC 9110 §5.5 and §5.6.2 do not allow white space before the colon, folded lines or control characters.
const fieldLinesPattern = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const contentLengthPattern = /^[0-9]+$/;

const originLine = /(?<=^|\r\n)origin:[\t ]*[\x21-\x7e]*[\t ]*\r\n/i;

/** Placeholder for the request head while a connection has no request. */
export const emptyHead: Http1RequestHead = {
  httpMethod: "",
  target: "/",
  section: readSection("", "1.1"),
  problem: undefined,
};
