import type { Socket } from "node:net";
import { type Backlog, type HeaderFields, unpooled } from "../carriers/index.ts";
import { fieldLines, type Framing } from "./answer-head.ts";

/**
 * Writes answers to a socket, each in as few writes as it needs, and counts the bytes that the client does not take.
 *
 * Large bodies are handed to the socket in slices, because a socket reports only that a whole write was taken.
 */
export class AnswerWriter {
  /** Whether the socket's buffer is full, so whatever can wait should wait. */
  congested = false;
  readonly #socket: Socket;
  readonly #backlog: Backlog;
  #framing: Framing = "none";
  /** Bytes still to be sent of a body whose length was announced. */
  #bytesLeft = 0;
  /** Entries that the socket was not given in full, and their whole size: an unsent part keeps its buffer alive. */
  readonly #queue: (string | Uint8Array)[] = [];
  #queuedBytes = 0;
  /** Bytes of the first entry that the socket has been given. */
  #firstAt = 0;
  /** Bytes that waited here and in the socket when last counted. */
  #heldBytes = 0;
  /** Bytes given to the socket in all, and how many of them the client had taken at the last check. */
  #writtenBytes = 0;
  #takenBytes = 0;
  #isLast = false;

  /** @param backlog - counts what the client does not take */
  constructor(socket: Socket, backlog: Backlog) {
    this.#socket = socket;
    this.#backlog = backlog;
  }

  /** Sends an interim answer. */
  continue(): void {
    this.#send("HTTP/1.1 100 Continue\r\n\r\n");
  }

  answer(head: string, body: Uint8Array | undefined): void {
    if (body === undefined) this.#send(head);
    else this.#sendAll([head, body]);
  }

  /** Sends the head of an answer whose body follows in pieces. */
  begin(head: string, framing: Framing): void {
    this.#framing = framing;
    this.#bytesLeft = typeof framing === "number" ? framing : 0;
    this.#send(head);
  }

  write(piece: Uint8Array): void {
    const { byteLength } = piece;
    if (byteLength === 0 || this.#framing === "none") return;
    this.#bytesLeft -= byteLength;
    if (this.#framing === "chunked") this.#sendAll([`${byteLength.toString(16)}\r\n`, piece, "\r\n"]);
    // The client would take the excess for its next answer.
    else if (typeof this.#framing === "number" && this.#bytesLeft < 0) this.#socket.destroy();
    else this.#send(this.#socket.writableLength > 0 ? unpooled(piece) : piece);
  }

  /** Ends the body, and returns whether as much was sent as was announced. */
  end(trailer: HeaderFields | undefined): boolean {
    if (this.#framing === "chunked") this.#send(`0\r\n${trailer === undefined ? "" : fieldLines(trailer)}\r\n`);
    return typeof this.#framing !== "number" || this.#bytesLeft === 0;
  }

  /** Ends our side once everything is sent. */
  close(): void {
    this.#isLast = true;
    if (this.#queue.length === 0) this.#socket.end();
  }

  /** Drops what waits, because the socket has closed. */
  drop(): void {
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  /** Continues to send, because the socket takes more again. */
  drained(): void {
    this.congested = false;
    this.#pump();
    if (this.#isLast) this.close();
  }

  /** Returns whether something waits, and the client has taken none of it since the last check. */
  hasStalled(): boolean {
    const before = this.#takenBytes;
    const { writableLength } = this.#socket;
    this.#takenBytes = this.#writtenBytes - writableLength;
    return writableLength > 0 && before === this.#takenBytes;
  }

  /** Sends parts in one write: joined if they are small, uncopied if they are large. */
  #sendAll(parts: readonly (string | Uint8Array)[]): void {
    let length = 0;
    for (const part of parts) length += part.length;
    // What has to wait is not taken from node's pool, 64 KiB of which it would keep alive.
    const mustWait = this.#socket.writableLength > 0;
    if (length <= joinedBytesMax) {
      return this.#send(joined(parts, mustWait ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length)));
    }
    this.#socket.cork();
    for (const part of parts) this.#send(mustWait && typeof part !== "string" ? unpooled(part) : part);
    this.#socket.uncork();
  }

  #send(data: string | Uint8Array): void {
    const isSmall = data.length <= sliceBytes && this.#queue.length === 0;
    if (!this.#socket.writable) return;
    if (isSmall) {
      this.#write(data);
      this.#count(data.length);
    } else {
      this.#queue.push(data);
      this.#queuedBytes += data.length;
      this.#count(data.length);
      if (!this.congested) this.#pump();
    }
  }

  /** Gives the socket as much as it takes. */
  #pump(): void {
    for (let [first] = this.#queue; first !== undefined && !this.congested; [first] = this.#queue) {
      const isLast = typeof first === "string" || first.length - this.#firstAt <= sliceBytes;
      const slice = typeof first === "string" ? first : first.subarray(this.#firstAt, this.#firstAt + sliceBytes);
      if (isLast) this.#shift(first.length);
      else this.#advance();
      // A slice keeps the whole buffer alive while it waits in the socket. The last one is copied, so that the rest of
      // the buffer, which has been taken, can be freed.
      this.#write(isLast && typeof slice !== "string" ? new Uint8Array(slice) : slice);
    }
    this.#count(0);
  }

  #shift(bytes: number): void {
    this.#queue.shift();
    this.#queuedBytes -= bytes;
    this.#firstAt = 0;
  }

  /** Notes that the client makes progress, although its whole buffer is still held. */
  #advance(): void {
    this.#firstAt += sliceBytes;
    this.#backlog.remove(sliceBytes);
    this.#backlog.add(sliceBytes);
  }

  #write(data: string | Uint8Array): void {
    const more = typeof data === "string" ? this.#socket.write(data, "latin1") : this.#socket.write(data);
    this.#writtenBytes += data.length;
    if (!more) this.congested = true;
  }

  /** Updates the backlog, now that `addedBytes` more are to be sent. */
  #count(addedBytes: number): void {
    const before = this.#heldBytes;
    const held = this.#socket.writableLength + this.#queuedBytes;
    // The usual case: the system took everything.
    if (before === 0 && held === 0) return;
    this.#heldBytes = held;
    this.#backlog.add(addedBytes);
    this.#backlog.remove(before + addedBytes - held);
  }
}

/** Returns parts joined, in memory that has just the length of all. */
function joined(parts: readonly (string | Uint8Array)[], all: Buffer): Buffer {
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") all.write(part, at, "latin1");
    else all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The most bytes of one write. A client has 75 s to take them: 3.5 KB/s. A megabyte takes four system calls. */
const sliceBytes = 256 * 1024;

/** The most bytes that are joined into one write; above, the copy costs more than another part of the write. */
const joinedBytesMax = 4096;
