import { CommonHeaderFields, type HeaderFields, HttpProblem } from "../carriers/index.ts";
import { notHttp, readFieldLines } from "./request-head.ts";
import { Incoming } from "./incoming.ts";

/** Reads a body in chunks (RFC 9112 §7.1) as it arrives, however it is split. */
export class ChunkedReader {
  /** Whether the last chunk and the trailer section have been read. */
  done = false;
  /** The problem of the body, after which nothing can be read; `undefined` if there is none. */
  problem: HttpProblem | undefined;
  #part: Part = "size";
  /** Bytes that are left of the chunk. */
  #chunkBytes = 0;
  #digits = 0;
  #extension = "";
  #extensionBytes = 0;
  #trailer: Incoming | undefined;
  readonly #trailerBytesMax: number;

  constructor(trailerBytesMax: number) {
    this.#trailerBytesMax = trailerBytesMax;
  }

  /**
   * Reads the next bytes.
   *
   * @param deliver - called with each piece of the body
   * @returns the offset at which the body ends, or the end of the bytes
   */
  read(bytes: Buffer, from: number, deliver: (piece: Buffer) => void): number {
    let at = from;
    while (at < bytes.byteLength && !this.done && this.problem === undefined) {
      const part = this.#part;
      if (part === "data") {
        const end = Math.min(bytes.byteLength, at + this.#chunkBytes);
        this.#chunkBytes -= end - at;
        if (this.#chunkBytes === 0) this.#part = "data CR";
        deliver(bytes.subarray(at, end));
        at = end;
      } else if (part === "trailer") at = this.#readTrailer(bytes, at);
      else this.#readOctet(bytes.readUInt8(at++), part);
    }
    return at;
  }

  #readOctet(octet: number, part: FramingPart): void {
    switch (part) {
      case "size":
        return this.#readSize(octet);
      case "extension":
        return this.#readExtension(octet);
      case "size LF":
        return this.#expect(octet, lf, this.#chunkBytes === 0 ? "trailer" : "data");
      case "data CR":
        return this.#expect(octet, cr, "data LF");
      case "data LF":
        this.#digits = 0;
        return this.#expect(octet, lf, "size");
    }
  }

  #readSize(octet: number): void {
    const digit = hexDigit(octet);
    if (digit >= 0 && this.#digits < chunkDigitsMax) {
      this.#digits++;
      this.#chunkBytes = this.#chunkBytes * 16 + digit;
    } else if (this.#digits === 0) this.problem = notHttp();
    else if (octet === cr) this.#part = "size LF";
    else if (octet === semicolon) {
      this.#part = "extension";
      this.#extension = ";";
    } else this.problem = notHttp();
  }

  #readExtension(octet: number): void {
    if (octet !== cr) {
      this.#extension += String.fromCharCode(octet);
      if (++this.#extensionBytes > extensionBytesMax) {
        this.problem = new HttpProblem(413, "the chunk extensions are too large");
      }
    } else if (extensionPattern.test(this.#extension)) this.#part = "size LF";
    else this.problem = notHttp();
  }

  #expect(octet: number, wanted: number, then: Part): void {
    if (octet === wanted) this.#part = then;
    else this.problem = notHttp();
  }

  /** Drops the trailer fields (§7.1.2), but checks them first: the next request begins where they end. */
  #readTrailer(bytes: Buffer, from: number): number {
    const trailer = (this.#trailer ??= new Incoming());
    const before = trailer.left;
    trailer.add(bytes.subarray(from));
    const all = trailer.bytes;
    const end = trailer.useSection();
    const length = typeof end === "string" ? all.byteLength : end;
    if (end === "broken" || length > this.#trailerBytesMax) this.problem = notHttp();
    else if (end !== "open") {
      const fields = readFieldLines(all.toString("latin1", 0, end));
      if (fields === undefined || saysLength(fields)) this.problem = notHttp();
      else this.done = true;
    }
    trailer.keep();
    return this.done ? from + length + 2 - before : bytes.byteLength;
  }
}

/** The part of the body that comes next. */
type Part = FramingPart | "data" | "trailer";
type FramingPart = "size" | "extension" | "size LF" | "data CR" | "data LF";

function hexDigit(octet: number): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** RFC 9110 §6.5.1: how a body is framed cannot be said behind it. */
function saysLength(trailer: HeaderFields): boolean {
  const { contentLength, transferEncoding } = new CommonHeaderFields(trailer);
  return contentLength !== null || transferEncoding !== null;
}

// RFC 9112 §7.1.1, without the white space that recipients need not take: ";" and a token, perhaps "=" and a token or a
// quoted string.
const extensionPattern =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;

const lf = 0x0a;
const cr = 0x0d;
const semicolon = 0x3b;
/** The most digits of a chunk's size, with leading zeros: 13 hexadecimal digits are 52 bits, still exact. */
const chunkDigitsMax = 13;

/** Bytes of all chunk extensions of a body, which nobody reads (RFC 9112 §7.1.1). */
// As in node: enough for signatures of chunks, and far below what would cost anything.
const extensionBytesMax = 16 * 1024;
