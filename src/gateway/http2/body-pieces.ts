/**
 * The pieces of a body that nobody has taken yet, in memory that is in proportion to their bytes.
 *
 * A piece is a view of the chunk that it came in with. A peer could have a byte of it keep 64 KiB of other
 * frames alive, or send a body as a million pieces; so those that are small beside their chunk are copied together.
 */
export class BodyPieces {
  #pieces: Uint8Array[] = none;
  #tail: Uint8Array = nothing;
  #tailBytes = 0;
  #bytes = 0;

  /** How many bytes are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes a piece. */
  add(piece: Uint8Array): void {
    const { byteLength } = piece;
    this.#bytes += byteLength;
    if (byteLength * 2 >= piece.buffer.byteLength) {
      this.#seal();
      this.#push(piece);
    } else if (this.#bytes === byteLength) {
      // The first is often the only one.
      this.#push(new Uint8Array(piece));
    } else {
      if (byteLength > this.#tail.byteLength - this.#tailBytes) this.#renewTail(byteLength);
      this.#tail.set(piece, this.#tailBytes);
      this.#tailBytes += byteLength;
    }
  }

  /** Takes the earliest piece out; `undefined` when there is none. */
  shift(): Uint8Array | undefined {
    if (this.#pieces.length === 0) this.#seal();
    const piece = this.#pieces.shift();
    if (piece !== undefined) this.#bytes -= piece.byteLength;
    return piece;
  }

  /** Takes all out, as one. */
  takeAll(): Uint8Array {
    this.#seal();
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    this.clear();
    return pieces.length === 1 ? (pieces[0] ?? nothing) : Buffer.concat(pieces, bytes);
  }

  /** Lets go of all. */
  clear(): void {
    this.#pieces = none;
    this.#tail = nothing;
    this.#tailBytes = 0;
    this.#bytes = 0;
  }

  #renewTail(bytes: number): void {
    this.#seal();
    // As much again as is there already: half of it at most is unused.
    const size = Math.min(Math.max(this.#bytes, tailBytesMin), tailBytesMax);
    // Not zeroed, and no part of a pool: only what was written to it is ever handed on.
    this.#tail = Buffer.allocUnsafeSlow(Math.max(bytes, size));
  }

  #seal(): void {
    if (this.#tailBytes === 0) return;
    this.#push(this.#tail.subarray(0, this.#tailBytes));
    this.#tail = this.#tail.subarray(this.#tailBytes);
    this.#tailBytes = 0;
  }

  #push(piece: Uint8Array): void {
    if (this.#pieces === none) this.#pieces = [piece];
    else this.#pieces.push(piece);
  }
}

const none: Uint8Array[] = [];
const nothing = new Uint8Array(0);
const tailBytesMin = 1024;
const tailBytesMax = 64 * 1024;
