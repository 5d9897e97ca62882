/**
 * Body pieces that nobody has read yet, held in memory proportional to their size.
 *
 * A piece is a view of the chunk it arrived in. A one-byte piece could keep 64 KiB of other frames alive, and a body
 * could arrive as a million pieces; so small pieces are copied together.
 */
export class BodyPieces {
  #pieces: Uint8Array[] = none;
  #tail: Uint8Array = nothing;
  #tailBytes = 0;
  #bytes = 0;

  /** Bytes held. */
  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Uint8Array): void {
    const { byteLength } = piece;
    // The first piece is often the only one.
    const isFirst = this.#bytes === 0;
    const fillsChunk = byteLength * 2 >= piece.buffer.byteLength;
    this.#bytes += byteLength;
    if (fillsChunk && (isFirst || byteLength >= ownPieceBytesMin)) {
      this.#seal();
      this.#push(piece);
    } else if (isFirst) {
      this.#push(new Uint8Array(piece));
    } else {
      if (byteLength > this.#tail.byteLength - this.#tailBytes) this.#renewTail(byteLength);
      this.#tail.set(piece, this.#tailBytes);
      this.#tailBytes += byteLength;
    }
  }

  /** Removes and returns the earliest piece; `undefined` when there is none. */
  shift(): Uint8Array | undefined {
    if (this.#pieces.length === 0) this.#seal();
    const piece = this.#pieces.shift();
    if (piece !== undefined) this.#bytes -= piece.byteLength;
    return piece;
  }

  /** Removes all pieces and returns them as one. */
  takeAll(): Uint8Array {
    this.#seal();
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    this.clear();
    return pieces.length === 1 ? (pieces[0] ?? nothing) : Buffer.concat(pieces, bytes);
  }

  clear(): void {
    this.#pieces = none;
    this.#tail = nothing;
    this.#tailBytes = 0;
    this.#bytes = 0;
  }

  #renewTail(bytes: number): void {
    this.#seal();
    // As large as everything held so far, so at most half of the memory is unused.
    const size = Math.min(Math.max(this.#bytes, tailBytesMin), tailBytesMax);
    // Not zeroed, which is safe because only bytes that were written are ever passed on; and outside node's pool.
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
// Smaller pieces are copied together: a view and its chunk cost some 250 bytes of their own.
const ownPieceBytesMin = 1024;
const tailBytesMin = 1024;
const tailBytesMax = 64 * 1024;
