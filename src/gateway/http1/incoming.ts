/** What has arrived and was not used yet: a chunk of the socket, or what was kept of earlier ones. */
export class Incoming {
  bytes: Buffer = none;
  /** Where what is left begins. */
  at = 0;
  /** Up to where it was searched for the end of something, in vain. */
  seen = 0;
  /** Room for what is kept, which grows with it; `bytes` is a part of it, or a chunk. */
  #room: Buffer = none;

  /** Bytes that are left. */
  get left(): number {
    return this.bytes.byteLength - this.at;
  }

  /** Adds a chunk: used as it is if nothing is left, otherwise copied behind the rest. */
  add(chunk: Buffer): void {
    if (this.left === 0) {
      this.bytes = chunk;
      this.at = this.seen = 0;
      return;
    }
    const end = this.bytes.byteLength;
    this.#reserve(end + chunk.byteLength);
    this.#room.set(chunk, end);
    this.bytes = this.#room.subarray(0, end + chunk.byteLength);
  }

  /** Has used everything up to here. */
  use(end: number): void {
    this.at = end;
    // The chunk is not kept until the next one comes.
    if (end === this.bytes.byteLength) this.clear();
  }

  /** Keeps what is left, without the rest of the chunk that it came in. */
  keep(): void {
    if (this.at === 0 && this.bytes.buffer === this.#room.buffer) return;
    const room = Buffer.allocUnsafeSlow(this.left);
    room.set(this.bytes.subarray(this.at));
    this.#room = this.bytes = room;
    this.seen = Math.max(0, this.seen - this.at);
    this.at = 0;
  }

  clear(): void {
    this.bytes = this.#room = none;
    this.at = this.seen = 0;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#room.byteLength) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#room.byteLength));
    larger.set(this.bytes);
    this.#room = larger;
  }
}

const none = Buffer.alloc(0);
