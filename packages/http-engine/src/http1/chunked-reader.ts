import {
  chunkExtensionsTooLarge,
  CommonHeaderFields,
  type HeaderFields,
  type HttpProblem,
  notHttp,
} from "@plantstore/gateway/exchange";
import type { Incoming } from "./incoming.ts";
import { readFieldLines } from "./request-head.ts";

/** Reads a body in chunks (RFC 9112 §7.1), however it is split. */
export class ChunkedReader {
  #part: "size" | "data" | "data end" | "trailer" = "size";
  /** Bytes that are left of the chunk. */
  #chunkBytes = 0;
  #extensionBytes = 0;
  readonly #trailerBytesMax: number;

  constructor(trailerBytesMax: number) {
    this.#trailerBytesMax = trailerBytesMax;
  }

  /**
   * Uses what comes next of the body.
   *
   * @returns a piece of it; "more" after what frames the pieces; "open" if it has not arrived, in which case nothing is
   * used; "end" behind the trailer section; or a problem, after which nothing can be read
   */
  read(incoming: Incoming): Buffer | HttpProblem | "more" | "open" | "end" {
    switch (this.#part) {
      case "size":
        return this.#readSize(incoming);
      case "data":
        return this.#readData(incoming);
      case "data end":
        return this.#readDataEnd(incoming);
      case "trailer":
        return this.#readTrailer(incoming);
    }
  }

  #readSize(incoming: Incoming): HttpProblem | "more" | "open" {
    const { bytes, at } = incoming;
    let end = at;
    let size = 0;
    for (let digit = hexDigit(bytes[end]); digit >= 0 && end - at <= digitsMax; digit = hexDigit(bytes[++end])) {
      size = size * 16 + digit;
    }
    if (end === at || end - at > digitsMax) return notHttp();
    const extensionsAt = end;
    if (bytes[end] === semicolon) end = endOfExtensions(bytes, end);
    const extensionBytes = this.#extensionBytes + end - extensionsAt;
    if (extensionBytes > extensionBytesMax) return chunkExtensionsTooLarge();
    const read = useLineEnd(incoming, end);
    if (read !== "more") return read;
    this.#extensionBytes = extensionBytes;
    this.#chunkBytes = size;
    this.#part = size === 0 ? "trailer" : "data";
    return chunkExtensions.test(bytes.toString("latin1", extensionsAt, end)) ? "more" : notHttp();
  }

  #readData(incoming: Incoming): Buffer {
    const piece = incoming.consumePiece(this.#chunkBytes);
    this.#chunkBytes -= piece.byteLength;
    if (this.#chunkBytes === 0) this.#part = "data end";
    return piece;
  }

  #readDataEnd(incoming: Incoming): HttpProblem | "more" | "open" {
    const read = useLineEnd(incoming, incoming.at);
    if (read === "more") this.#part = "size";
    return read;
  }

  /** Drops the trailer fields (§7.1.2), but checks them first: the next request begins where they end. */
  #readTrailer(incoming: Incoming): HttpProblem | "open" | "end" {
    const { bytes, at } = incoming;
    const end = incoming.consumeSection();
    const length = (typeof end === "string" ? bytes.byteLength : end) - at;
    if (end === "broken" || length > this.#trailerBytesMax) return notHttp();
    if (end === "open") return "open";
    const fields = readFieldLines(bytes.toString("latin1", at, end));
    return fields === undefined || saysLength(fields) ? notHttp() : "end";
  }
}

/** RFC 9110 §6.5.1: how a body is framed cannot be said behind it. */
function saysLength(trailer: HeaderFields): boolean {
  const { contentLength, transferEncoding } = new CommonHeaderFields(trailer);
  return contentLength !== null || transferEncoding !== null;
}

/** Returns where the extensions end: at a CR, or with what has arrived. No more than {@link extensionBytesMax} come. */
function endOfExtensions(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(cr, from);
  return end < 0 ? bytes.byteLength : end;
}

/** Uses what comes up to a CR LF, which must be at `end`. */
function useLineEnd(incoming: Incoming, end: number): HttpProblem | "more" | "open" {
  const { bytes } = incoming;
  const left = bytes.byteLength - end;
  if ((left > 0 && bytes[end] !== cr) || (left > 1 && bytes[end + 1] !== lf)) return notHttp();
  if (left < 2) return "open";
  incoming.consume(end + 2);
  return "more";
}

/** Returns the value of a hexadecimal digit; -1 for anything else. */
function hexDigit(octet = 0): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

// RFC 9112 §7.1.1, without the white space that recipients need not take: each is ";" and a token, perhaps "=" and a
// token or a quoted string.
const chunkExtensions =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;

const lf = 0x0a;
const cr = 0x0d;
const semicolon = 0x3b;
/** The most digits of a chunk's size, with leading zeros: 13 hexadecimal digits are 52 bits, still exact. */
const digitsMax = 13;

/** Bytes of all chunk extensions of a body, which nobody reads (RFC 9112 §7.1.1). */
// As in node: enough for signatures of chunks, and far below what would cost anything.
const extensionBytesMax = 16 * 1024;
