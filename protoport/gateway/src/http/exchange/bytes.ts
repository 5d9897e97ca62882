/** node's Buffer, if it exists. Slicing its pool takes a third to half the time of allocating an array. */
const nodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

const encoder = new TextEncoder();

/** An empty array. */
export const noBytes: Uint8Array = new Uint8Array(0);

/** Returns an array with `length` arbitrary bytes. The caller must fill the whole array. */
export const allocateBytes: (length: number) => Uint8Array = nodeBuffer?.allocUnsafe ?? newBytes;

/** Returns `length` arbitrary bytes outside node's pool. A slice of the pool would keep the whole pool alive. */
export const allocateBuffer: (length: number) => Uint8Array = nodeBuffer?.allocUnsafeSlow ?? newBytes;

/** Copies a slice from node's pool, and returns other bytes unchanged. Call this function before buffering bytes. */
export function copyIfPooled(bytes: Uint8Array): Uint8Array {
  const { byteLength, buffer } = bytes;
  const isSlice = buffer.byteLength > 2 * byteLength;
  return isSlice && byteLength < slicesBytesMax ? new Uint8Array(bytes) : bytes;
}

/** Encodes a string as UTF-8. */
export const toUtf8: (text: string) => Uint8Array =
  nodeBuffer === undefined ? (text) => encoder.encode(text) : (text) => nodeBuffer.from(text);

/** Joins pieces into one array. */
export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  if (nodeBuffer !== undefined) return nodeBuffer.concat(pieces);
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return joined;
}

/** Number of bytes from which node allocates outside the pool: half of the pool, which has 64 KiB by default. */
const slicesBytesMax = nodeBuffer === undefined ? 0 : nodeBuffer.poolSize / 2;

function newBytes(length: number): Uint8Array {
  return new Uint8Array(length);
}
