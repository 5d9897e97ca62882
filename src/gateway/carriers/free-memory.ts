/**
 * Frees memory at once of which it is known that nobody reads it any more.
 *
 * Left to the collector, 32 MB of buffers are enough to have the whole heap marked, which takes 15 ms and more; and what
 * is used again at once is still in the cache of the processor. A megabyte that comes and goes costs a third of it.
 */

/** Bytes of a buffer that is worth freeing, which costs 0.3 µs. */
export const freedBytesMin: number = 16 * 1024;

/**
 * Frees the buffer of a chunk, unless there is more in it. Every view of it is empty afterwards, so nobody may need one.
 * Callers do not ask for chunks below {@link freedBytesMin}: to see that costs them less than the call.
 */
export function freeChunk(chunk: Uint8Array): void {
  if (isAlone(chunk)) freeBuffer(chunk.buffer);
}

const singleUse = new WeakSet<ArrayBufferLike>();

/** Says of bytes that nobody but the carrier that sends them will read them: they were made for one answer. */
export function markSingleUse(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength >= freedBytesMin && isAlone(bytes)) singleUse.add(bytes.buffer);
  return bytes;
}

/** Whether the buffer of these bytes may be freed once all of them are sent. */
export function isSingleUse({ buffer }: Uint8Array): boolean {
  return buffer.byteLength >= freedBytesMin && singleUse.has(buffer);
}

/** Frees a buffer. Every view of it is empty afterwards. */
export function freeBuffer(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Whether nothing else is in the buffer of these bytes, as there is in node's pool. */
function isAlone({ byteLength, buffer }: Uint8Array): boolean {
  return byteLength === buffer.byteLength;
}
