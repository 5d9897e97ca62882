import type { Socket } from "node:net";
import { type Backlog, freeChunk, type HeaderFields, isSingleUse, unpooled } from "@plantstore/gateway/exchange";
import { fieldLines, type Framing } from "./response-head.ts";

/**
 * Writes answers to a socket, each in as few writes as it needs, and counts the bytes that the client does not take.
 *
 * Large bodies are handed to the socket in slices, because a socket reports only that a whole write was taken.
 */
export class ResponseWriter {
  /** Whether the socket's buffer is full, so whatever can wait should wait. */
  congested = false;
  readonly #socket: Socket;
  readonly #backlog: Backlog;
  #framing: Framing = "none";
  /** Bytes still to be sent of a body whose length was announced. */
  #bytesLeft = 0;
  /** Entries that the socket was not given in full. Each counts as a whole: an unsent part keeps its buffer alive. */
  readonly #queue: (string | Uint8Array)[] = [];
  /** Bytes of the first entry that the socket has been given. */
  #firstAt = 0;
  /** Bytes given to the socket since it was last counted what it holds. */
  #writtenBytes = 0;
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

  respond(head: string, body: Uint8Array | undefined): void {
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
    if (this.#framing === "chunked") this.#sendAll([`${byteLength.toString(16)}\r\n`, piece, "\r\n"]);
    // The client would take the excess for its next answer.
    else if (typeof this.#framing === "number" && (this.#bytesLeft -= byteLength) < 0) this.#socket.destroy();
    else this.#send(this.#socket.writableLength > 0 ? unpooled(piece) : piece);
  }

  /** Ends the body, and returns whether as much was sent as was announced. */
  end(trailer: HeaderFields | undefined): boolean {
    if (this.#framing === "chunked") this.#send(`0\r\n${trailer === undefined ? "" : fieldLines(trailer)}\r\n`);
    return this.#bytesLeft === 0;
  }

  /** Ends our side once everything is sent. */
  close(): void {
    this.#isLast = true;
    this.#pump();
  }

  /** Drops what waits, because the socket has closed. */
  drop(): void {
    this.#queue.length = 0;
  }

  /** Continues to send, because the socket takes more again. */
  drained(): void {
    this.congested = false;
    this.#pump();
    this.#count();
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
    for (const part of parts) this.#push(mustWait && typeof part !== "string" ? unpooled(part) : part);
    this.#socket.uncork();
    this.#count();
  }

  #send(data: string | Uint8Array): void {
    this.#push(data);
    this.#count();
  }

  #push(data: string | Uint8Array): void {
    if (!this.#socket.writable) return;
    if (data.length <= sliceBytes && this.#queue.length === 0) return this.#write(data);
    this.#queue.push(data);
    this.#backlog.add(data.length);
    if (!this.congested) this.#pump();
  }

  /** Gives the socket as much as it takes, and ends our side behind what is the last. */
  #pump(): void {
    for (let [first] = this.#queue; first !== undefined && !this.congested; [first] = this.#queue) {
      const isLast = typeof first === "string" || first.length - this.#firstAt <= sliceBytes;
      const slice = typeof first === "string" ? first : first.subarray(this.#firstAt, this.#firstAt + sliceBytes);
      if (isLast) this.#shift(first.length);
      else this.#firstAt += sliceBytes;
      if (isLast && typeof first !== "string") this.#writeLast(first, slice);
      else this.#write(slice);
    }
    if (this.#isLast && this.#queue.length === 0) this.#socket.end();
  }

  /**
   * Writes the last slice of an entry. A slice keeps the whole buffer alive while it waits in the socket. So the last one
   * is copied, and the rest of the buffer, which has been taken, can be freed: at once if nothing else reads it.
   */
  #writeLast(entry: Uint8Array, slice: string | Uint8Array): void {
    // Not where the program has raised node's high-water mark: there a socket takes slices that it has yet to send.
    const isTaken = this.#socket.writableLength === 0;
    this.#write(typeof slice === "string" ? slice : new Uint8Array(slice));
    if (isTaken && isSingleUse(entry)) freeChunk(entry);
  }

  #shift(bytes: number): void {
    this.#queue.shift();
    this.#backlog.remove(bytes);
    this.#firstAt = 0;
  }

  #write(data: string | Uint8Array): void {
    const more = typeof data === "string" ? this.#socket.write(data, "latin1") : this.#socket.write(data);
    this.#writtenBytes += data.length;
    if (!more) this.congested = true;
  }

  /** Counts what the socket holds, once all that can be written was written. */
  #count(): void {
    this.#backlog.count(this.#writtenBytes);
    this.#writtenBytes = 0;
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
