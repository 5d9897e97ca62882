const pieceBytes = 8 * 1024;
/** Returns a file's unique content with 50 to 150 kB, which is more than a connection window to the upstream. */
export const contentOf = (number: number): Buffer => Buffer.alloc(50_000 + (number % 100_000), `${number}.`);

export function piecesOf(content: Buffer): readonly Buffer[] {
  const count = Math.ceil(content.byteLength / pieceBytes);
  return Array.from({ length: count }, (_, at) => content.subarray(at * pieceBytes, (at + 1) * pieceBytes));
}
