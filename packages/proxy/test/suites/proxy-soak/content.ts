/** Bytes of a piece of an upload or a download. */
const pieceBytes = 8 * 1024;

/** Returns a file's unique content: 50 to 150 kB, which is more than a window of the upstream's connection. */
export function contentOf(number: number): Buffer {
  return Buffer.alloc(50_000 + (number % 100_000), `${number}.`);
}

/** Returns the pieces of a content. */
export function piecesOf(content: Buffer): readonly Buffer[] {
  const count = Math.ceil(content.byteLength / pieceBytes);
  return Array.from({ length: count }, (_, at) => content.subarray(at * pieceBytes, (at + 1) * pieceBytes));
}
