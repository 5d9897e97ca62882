import { CommonHeaderFields, type HeaderFields, type HttpProblem } from "../../http/index.ts";
import { chunkExtensionsTooLargeProblem, invalidHttpProblem } from "./problems.ts";
import type { Incoming } from "./incoming.ts";
import { readFieldLines } from "./request-head.ts";

/** Reads a chunked body (RFC 9112 §7.1), even if the socket splits chunks anywhere. */
export class ChunkedReader {
  #part: "size" | "data" | "data end" | "trailer" = "size";
  /** Number of bytes that remain in the current chunk. */
  #chunkBytes = 0;
  #extensionBytes = 0;
  readonly #maxTrailerBytes: number;

  constructor(maxTrailerBytes: number) {
    this.#maxTrailerBytes = maxTrailerBytes;
  }

  /**
   * Consumes the next piece of a chunked body, or the framing before the next piece.
   *
   * @returns the piece, "more" after framing, "open" if more bytes must arrive and none were consumed, "end" after the
   * trailer section, or a problem, after which no bytes can be read
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
    for (let digit = hexDigit(bytes[end]); digit >= 0 && end - at <= maxDigits; digit = hexDigit(bytes[++end])) {
      size = size * 16 + digit;
    }
    if (end === at || end - at > maxDigits) return invalidHttpProblem();
    const extensionsAt = end;
    if (startsExtensions(bytes[end])) end = endOfExtensions(bytes, end);
    const extensionBytes = this.#extensionBytes + end - extensionsAt;
    if (extensionBytes > maxExtensionBytes) return chunkExtensionsTooLargeProblem();
    const read = consumeLineEnd(incoming, end);
    if (read !== "more") return read;
    this.#extensionBytes = extensionBytes;
    this.#chunkBytes = size;
    this.#part = size === 0 ? "trailer" : "data";
    return chunkExtensions.test(bytes.toString("latin1", extensionsAt, end)) ? "more" : invalidHttpProblem();
  }

  #readData(incoming: Incoming): Buffer {
    const piece = incoming.consumePiece(this.#chunkBytes);
    this.#chunkBytes -= piece.byteLength;
    if (this.#chunkBytes === 0) this.#part = "data end";
    return piece;
  }

  #readDataEnd(incoming: Incoming): HttpProblem | "more" | "open" {
    const read = consumeLineEnd(incoming, incoming.at);
    if (read === "more") this.#part = "size";
    return read;
  }

  /** Checks the trailer fields and drops them (§7.1.2). The next request starts after the trailer section. */
  #readTrailer(incoming: Incoming): HttpProblem | "open" | "end" {
    const { bytes, at } = incoming;
    const end = incoming.consumeSection();
    const length = (typeof end === "string" ? bytes.byteLength : end) - at;
    if (end === "invalid" || length > this.#maxTrailerBytes) return invalidHttpProblem();
    if (end === "open") return "open";
    const fields = readFieldLines(bytes.toString("latin1", at, end));
    return fields === undefined || hasFramingField(fields) ? invalidHttpProblem() : "end";
  }
}

/** Framing fields are not allowed in a trailer section (RFC 9110 §6.5.1). */
function hasFramingField(trailer: HeaderFields): boolean {
  const { contentLength, transferEncoding } = new CommonHeaderFields(trailer);
  return contentLength !== null || transferEncoding !== null;
}

// A semicolon or white space can start a chunk extension.
function startsExtensions(octet: number | undefined): boolean {
  return octet === semicolon || octet === space || octet === tab;
}

/** Returns the position after the chunk extensions: the next CR, or the end of the received bytes. */
function endOfExtensions(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(cr, from);
  return end < 0 ? bytes.byteLength : end;
}

/** Consumes all bytes up to and including a CR LF, which must be at `end`. */
function consumeLineEnd(incoming: Incoming, end: number): HttpProblem | "more" | "open" {
  const { bytes } = incoming;
  const available = bytes.byteLength - end;
  if ((available > 0 && bytes[end] !== cr) || (available > 1 && bytes[end + 1] !== lf)) return invalidHttpProblem();
  if (available < 2) return "open";
  incoming.consume(end + 2);
  return "more";
}

function hexDigit(octet = 0): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

// RFC 9112 §7.1.1: a chunk extension is ";" and a name, optionally followed by "=" and a token or a quoted string.
// Spaces and tabs may surround ";" and "=".
const chunkExtensions =
  /^(?:[\t ]*;[\t ]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:[\t ]*=[\t ]*(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;

const lf = 0x0a;
const cr = 0x0d;
const semicolon = 0x3b;
const space = 0x20;
const tab = 0x09;
// Maximum digits in a chunk size, with leading zeros. JavaScript numbers are exact up to 13 hexadecimal digits.
const maxDigits = 13;

/** Maximum number of bytes in all chunk extensions of a body. Chunk extensions are ignored (RFC 9112 §7.1.1). */
// 16 KiB, as in node:http, are enough for chunk signatures.
const maxExtensionBytes = 16 * 1024;
