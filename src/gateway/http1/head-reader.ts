import { headerTooLarge, type HttpProblem, urlTooLong } from "../carriers/index.ts";
import type { Http1Limits } from "./http1-limits.ts";
import type { Incoming } from "./incoming.ts";
import { type FieldSection, notHttp, readRequestHead, type RequestHead, unreadable } from "./request-head.ts";
import { findSectionEnd } from "./section-end.ts";

/** Reads the heads of a connection, however they are cut. */
export class HeadReader {
  readonly #limits: Http1Limits;
  #before: FieldSection | undefined;
  #emptyLines = 0;

  constructor(limits: Http1Limits) {
    this.#limits = limits;
  }

  /** Returns the next head, perhaps with a problem; `undefined` while it is not complete. */
  read(incoming: Incoming): RequestHead | undefined {
    const { bytes } = incoming;
    // RFC 9112 §2.2: empty lines before a request are ignored.
    for (; bytes[incoming.at] === cr && bytes[incoming.at + 1] === lf; this.#emptyLines++) incoming.at += 2;
    if (this.#emptyLines > emptyLinesMax) return unreadable(notHttp());
    const start = incoming.at;
    const end = findSectionEnd(bytes, start, incoming.seen);
    const problem = this.#problem(bytes, start, end);
    if (problem !== undefined) return unreadable(problem);
    if (typeof end === "string") {
      incoming.seen = bytes.byteLength;
      return undefined;
    }
    incoming.use(end + 2);
    this.#emptyLines = 0;
    const lineEnd = bytes.indexOf(lf, start) + 1;
    const requestLine = bytes.toString("latin1", start, lineEnd);
    const head = readRequestHead(requestLine, bytes.toString("latin1", lineEnd, end), this.#before);
    this.#before = head.section;
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

const lf = 0x0a;
const cr = 0x0d;
const capitalA = 0x41;
const capitalZ = 0x5a;
/** Empty lines before a request. Old clients send one too many behind a body; more would only keep a connection open. */
const emptyLinesMax = 16;
/** Bytes of a request line beside its target: the longest method that is registered, spaces and version. */
const requestLineBytes = 64;
