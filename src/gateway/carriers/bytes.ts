/**
 * node's Buffer, where there is one. Its pool makes a short message two to three times as cheap as an array of its own.
 */
const pooled: typeof Buffer | undefined = globalThis.Buffer;

const encoder = new TextEncoder();

/** Returns an array of this length. Its content is arbitrary: the caller must fill all of it. */
export const allocateBytes: (length: number) => Uint8Array = pooled?.allocUnsafe ?? newBytes;

/**
 * Returns an array of this length outside of node's pool, for bytes that are kept: a part of it would keep the whole
 * pool alive. Its content is arbitrary, too.
 */
export const allocateBuffer: (length: number) => Uint8Array = pooled?.allocUnsafeSlow ?? newBytes;

/** Returns a text as UTF-8. */
export const toUtf8: (text: string) => Uint8Array =
  pooled === undefined ? (text) => encoder.encode(text) : (text) => pooled.from(text);

/** Joins pieces into one array. */
export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  if (pooled !== undefined) return pooled.concat(pieces);
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

function newBytes(length: number): Uint8Array {
  return new Uint8Array(length);
}
