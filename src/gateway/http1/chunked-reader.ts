import { CommonHeaderFields, type HeaderFields, HttpProblem } from "../carriers/index.ts";
import type { Incoming } from "./incoming.ts";
import { notHttp, readFieldLines } from "./request-head.ts";

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
    const end = bytes.indexOf("\r\n", at, "latin1");
    const line = bytes.toString("latin1", at, end < 0 ? Math.min(bytes.byteLength, at + lineBytesMax) : end);
    const [, size, extensions] = (end < 0 ? partOfChunkLine : chunkLine).exec(line) ?? [];
    if (size === undefined || extensions === undefined) return notHttp();
    const extensionBytes = this.#extensionBytes + extensions.length;
    if (extensionBytes > extensionBytesMax) return new HttpProblem(413, "the chunk extensions are too large");
    if (end < 0) return "open";
    incoming.use(end + 2);
    this.#extensionBytes = extensionBytes;
    this.#chunkBytes = Number.parseInt(size, 16);
    this.#part = this.#chunkBytes === 0 ? "trailer" : "data";
    return "more";
  }

  #readData(incoming: Incoming): Buffer {
    const piece = incoming.usePiece(this.#chunkBytes);
    this.#chunkBytes -= piece.byteLength;
    if (this.#chunkBytes === 0) this.#part = "data end";
    return piece;
  }

  #readDataEnd(incoming: Incoming): HttpProblem | "more" | "open" {
    const { bytes, at, left } = incoming;
    if (bytes[at] !== cr || (left > 1 && bytes[at + 1] !== lf)) return notHttp();
    if (left === 1) return "open";
    incoming.use(at + 2);
    this.#part = "size";
    return "more";
  }

  /** Drops the trailer fields (§7.1.2), but checks them first: the next request begins where they end. */
  #readTrailer(incoming: Incoming): HttpProblem | "open" | "end" {
    const { bytes, at } = incoming;
    const end = incoming.useSection();
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

// RFC 9112 §7.1, without the white space that recipients need not take: a size, with leading zeros 13 hexadecimal
// digits at most, which are 52 bits and still exact; then each extension is ";" and a token, perhaps "=" and a token or
// a quoted string.
const chunkLine =
  /^([0-9A-Fa-f]{1,13})((?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*)$/;
// What such a line may begin with.
const partOfChunkLine = /^([0-9A-Fa-f]{1,13})((?:;[^\r\n]*)?)\r?$/;

const lf = 0x0a;
const cr = 0x0d;

/** Bytes of all chunk extensions of a body, which nobody reads (RFC 9112 §7.1.1). */
// As in node: enough for signatures of chunks, and far below what would cost anything.
const extensionBytesMax = 16 * 1024;
/** Bytes of a line that are looked at while it has no end: more than a size and all extensions. */
const lineBytesMax = extensionBytesMax + 32;
