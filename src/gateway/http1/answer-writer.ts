import type { Socket } from "node:net";
import { type Backlog, type HeaderFields, readField } from "../carriers/index.ts";
import { fieldLines, type Framing, framingLines, type LastLines, statusLine } from "./answer-head.ts";
import type { RequestHead } from "./request-head.ts";

/** Options of {@link AnswerWriter}. */
export interface AnswerWriterOptions {
  readonly lastLines: LastLines;
  /** Counts what the client does not take. */
  readonly backlog: Backlog;
  /** Milliseconds for which the client may take none of it. */
  readonly stallTimeoutMs: number;
}

/** Writes answers to a socket, each in as few writes as it needs, and counts what the client does not take. */
export class AnswerWriter {
  /** Whether the socket holds more than it should, so that anything that can wait should. */
  congested = false;
  readonly #socket: Socket;
  readonly #options: AnswerWriterOptions;
  #framing: Framing = "none";
  /** Bytes that are left of a body whose length was announced. */
  #bytesLeft = 0;
  /** Bytes in the socket when last counted. */
  #heldBytes = 0;

  constructor(socket: Socket, options: AnswerWriterOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("timeout", () => this.#stalled());
  }

  /** Sends an interim answer. */
  continue(): void {
    this.#send("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /**
   * Sends a whole answer.
   *
   * @param persistent - whether the connection is kept
   * @param body - absent where the status or the method allows none
   * @throws TypeError for fields that HTTP does not allow, before anything is sent
   */
  answer(
    request: RequestHead,
    persistent: boolean,
    httpStatus: number,
    lines: string,
    body: Uint8Array | undefined,
  ): void {
    const bodiless = isBodiless(httpStatus, request);
    const framing = body === undefined && bodiless ? "none" : (body?.byteLength ?? 0);
    const head = this.#head(httpStatus, lines, framing, persistent);
    if (body === undefined || body.byteLength === 0 || bodiless) this.#send(head);
    else this.#sendAll([head, body]);
  }

  /** Sends the head of an answer whose body follows in pieces, framed as {@link framingOf} has said. */
  begin(persistent: boolean, httpStatus: number, lines: string, framing: Framing): void {
    this.#framing = framing;
    // A length is among the fields already.
    const isAnnounced = typeof framing === "number";
    this.#bytesLeft = isAnnounced ? framing : 0;
    this.#send(this.#head(httpStatus, lines, isAnnounced ? "none" : framing, persistent));
  }

  /** Sends a piece of the body. */
  write(piece: Uint8Array): void {
    const { byteLength } = piece;
    if (byteLength === 0 || this.#framing === "none") return;
    this.#bytesLeft -= byteLength;
    if (this.#framing === "chunked") this.#sendAll([`${byteLength.toString(16)}\r\n`, piece, "\r\n"]);
    // More than was announced would be taken for the next answer.
    else if (typeof this.#framing === "number" && this.#bytesLeft < 0) this.#socket.destroy();
    else this.#send(piece);
  }

  /** Ends the body. Returns whether all of it was sent that was announced. */
  end(trailer: HeaderFields | undefined): boolean {
    if (this.#framing === "chunked") this.#send(`0\r\n${trailer === undefined ? "" : fieldLines(trailer)}\r\n`);
    return typeof this.#framing !== "number" || this.#bytesLeft === 0;
  }

  /** The socket takes more again. */
  drained(): void {
    this.congested = false;
    this.#count(0);
  }

  #head(httpStatus: number, lines: string, framing: Framing, persistent: boolean): string {
    return statusLine(httpStatus) + lines + framingLines(framing) + this.#options.lastLines.now(persistent);
  }

  /** Sends parts in one write: small ones as one, large ones uncopied. */
  #sendAll(parts: readonly (string | Uint8Array)[]): void {
    let length = 0;
    for (const part of parts) length += part.length;
    if (length <= joinedBytesMax) return this.#send(joined(parts, length));
    this.#socket.cork();
    for (const part of parts) this.#send(part);
    this.#socket.uncork();
  }

  #send(data: string | Uint8Array): void {
    const socket = this.#socket;
    if (!socket.writable) return;
    const more = typeof data === "string" ? socket.write(data, "latin1") : socket.write(data);
    if (!more) this.congested = true;
    this.#count(data.length);
  }

  /** Counts what the socket holds, after so many bytes more were written to it. */
  #count(writtenBytes: number): void {
    const before = this.#heldBytes;
    const held = this.#socket.writableLength;
    // The usual case: the system took everything.
    if (before === 0 && held === 0) return;
    this.#heldBytes = held;
    const { backlog, stallTimeoutMs } = this.#options;
    backlog.add(writtenBytes);
    backlog.remove(before + writtenBytes - held);
    if (held > 0) this.#socket.setTimeout(stallTimeoutMs);
  }

  /** The client has taken nothing for as long as it may. */
  #stalled(): void {
    if (this.#socket.writableLength > 0) this.#socket.destroy();
    // A quiet stream may follow.
    else this.#socket.setTimeout(0);
  }
}

/** Returns how the end of an answer is told whose body follows in pieces (RFC 9112 §6.3). */
export function framingOf(request: RequestHead, httpStatus: number, fields: HeaderFields): Framing {
  if (isBodiless(httpStatus, request)) return "none";
  const length = readField(fields, "content-length");
  if (length !== null) return Number(length);
  return request.section.httpVersion === "1.0" ? "close" : "chunked";
}

function isBodiless(httpStatus: number, { httpMethod }: RequestHead): boolean {
  return httpStatus === 204 || httpStatus === 304 || httpMethod === "HEAD";
}

function joined(parts: readonly (string | Uint8Array)[], length: number): Buffer {
  const all = Buffer.allocUnsafe(length);
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") all.write(part, at, "latin1");
    else all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Bytes. Above it a copy costs more than a further piece of a write. */
const joinedBytesMax = 4096;
