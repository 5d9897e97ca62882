import type { Socket } from "node:net";
import { freeChunk, type HeaderFields, isSingleUse, copyIfPooled } from "../../http/index.ts";
import { type Backlog } from "../backlog.ts";
import { fieldLines, type Framing } from "./response-head.ts";

/**
 * Writes responses to a socket in as few writes as possible, and counts the bytes that the client has not read.
 *
 * Large bodies are written in slices, because a socket reports progress only after a complete write.
 */
export class ResponseWriter {
  /** Whether the socket's buffer is full. */
  congested = false;
  readonly #socket: Socket;
  readonly #backlog: Backlog;
  #framing: Framing = "none";
  /** Number of body bytes that remain to be sent, if the length was announced. */
  #remainingBytes = 0;
  /** Queued data. A partly written buffer counts with its full size, because all of it stays in memory. */
  readonly #queue: (string | Uint8Array)[] = [];
  /** Number of bytes from the queue's first entry that were written to the socket. */
  #firstAt = 0;
  /** Number of bytes written to the socket since the backlog was last counted. */
  #writtenBytes = 0;
  #isLast = false;

  constructor(socket: Socket, backlog: Backlog) {
    this.#socket = socket;
    this.#backlog = backlog;
  }

  /** Whether the operating system has all bytes. */
  get isSent(): boolean {
    return this.#queue.length === 0 && this.#socket.writableLength === 0;
  }

  continue(): void {
    this.#send("HTTP/1.1 100 Continue\r\n\r\n");
  }

  respond(head: string, body: Uint8Array | undefined): void {
    if (body === undefined) this.#send(head);
    else this.#sendAll([head, body]);
  }

  begin(head: string, framing: Framing): void {
    this.#framing = framing;
    this.#remainingBytes = typeof framing === "number" ? framing : 0;
    this.#send(head);
  }

  write(piece: Uint8Array): void {
    const { byteLength } = piece;
    if (byteLength === 0 || this.#framing === "none") return;
    if (this.#framing === "chunked") this.#sendAll([`${byteLength.toString(16)}\r\n`, piece, "\r\n"]);
    // Destroys the connection, because the client would parse excess bytes as the next response.
    else if (typeof this.#framing === "number" && (this.#remainingBytes -= byteLength) < 0) this.#socket.destroy();
    else this.#send(this.#socket.writableLength > 0 ? copyIfPooled(piece) : piece);
  }

  /** Ends the body, and returns whether the announced length was sent. */
  end(trailer: HeaderFields | undefined): boolean {
    if (this.#framing === "chunked") this.#send(`0\r\n${trailer === undefined ? "" : fieldLines(trailer)}\r\n`);
    return this.#remainingBytes === 0;
  }

  /** Closes our side of the connection after all queued bytes are written. */
  close(): void {
    this.#isLast = true;
    this.#pump();
  }

  drop(): void {
    this.#queue.length = 0;
  }

  drained(): void {
    this.congested = false;
    this.#pump();
    this.#count();
  }

  /** Sends parts in one write. Small parts are joined, and large parts are not copied. */
  #sendAll(parts: readonly (string | Uint8Array)[]): void {
    let length = 0;
    for (const part of parts) length += part.length;
    // Data that the socket must buffer is allocated separately. A slice from node's pool would keep 64 KiB alive.
    const isSocketFull = this.#socket.writableLength > 0;
    if (length <= maxJoinedBytes) {
      return this.#send(joinParts(parts, isSocketFull ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length)));
    }
    this.#socket.cork();
    for (const part of parts) this.#writeOrQueue(isSocketFull && typeof part !== "string" ? copyIfPooled(part) : part);
    this.#socket.uncork();
    this.#count();
  }

  #send(data: string | Uint8Array): void {
    this.#writeOrQueue(data);
    this.#count();
  }

  #writeOrQueue(data: string | Uint8Array): void {
    if (!this.#socket.writable) return;
    if (data.length <= sliceBytes && this.#queue.length === 0) return this.#write(data);
    this.#queue.push(data);
    this.#backlog.add(data.length);
    if (!this.congested) this.#pump();
  }

  /** Writes queued entries until the socket is full, and closes our side after the last entry. */
  #pump(): void {
    for (let [first] = this.#queue; first !== undefined && !this.congested; [first] = this.#queue) {
      const isLast = typeof first === "string" || first.length - this.#firstAt <= sliceBytes;
      const slice = typeof first === "string" ? first : first.subarray(this.#firstAt, this.#firstAt + sliceBytes);
      if (isLast) this.#removeWritten(first.length);
      else this.#firstAt += sliceBytes;
      if (isLast && typeof first !== "string") this.#writeLast(first, slice);
      else this.#write(slice);
    }
    if (this.#isLast && this.#queue.length === 0) this.#socket.end();
  }

  // Writes a copy of an entry's last slice, so that the socket does not keep the whole entry in memory. Frees the entry
  // if no other code reads the entry.
  #writeLast(entry: Uint8Array, slice: string | Uint8Array): void {
    // If the application has raised node's high-water mark, the socket may still hold earlier slices.
    const isSent = this.#socket.writableLength === 0;
    this.#write(typeof slice === "string" ? slice : new Uint8Array(slice));
    if (isSent && isSingleUse(entry)) freeChunk(entry);
  }

  #removeWritten(bytes: number): void {
    this.#queue.shift();
    this.#backlog.remove(bytes);
    this.#firstAt = 0;
  }

  #write(data: string | Uint8Array): void {
    const hasCapacity = typeof data === "string" ? this.#socket.write(data, "latin1") : this.#socket.write(data);
    this.#writtenBytes += data.length;
    if (!hasCapacity) this.congested = true;
  }

  /** Counts the bytes that the socket buffers after all possible writes. */
  #count(): void {
    this.#backlog.count(this.#writtenBytes);
    this.#writtenBytes = 0;
  }
}

function joinParts(parts: readonly (string | Uint8Array)[], all: Buffer): Buffer {
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") all.write(part, at, "latin1");
    else all.set(part, at);
    at += part.length;
  }
  return all;
}

// Maximum number of bytes in one write. To read a slice within the 75 s timeout, a client must read 3.5 KB/s. A
// megabyte takes four system calls.
const sliceBytes = 256 * 1024;

/** Maximum number of bytes that are joined into one buffer. Copying more bytes costs more than another writev entry. */
const maxJoinedBytes = 4096;
