/**
 * Frees memory as soon as nothing can read it any more.
 *
 * Left to the garbage collector, 32 MB of buffers make it mark the whole heap, which takes 15 ms or more. Memory that
 * is reused at once is also still in the processor's cache. This way a megabyte that comes and goes costs a third.
 */

/** The smallest buffer worth freeing, in bytes: to free one costs 0.3 µs. */
export const freedBytesMin: number = 16 * 1024;

/**
 * Frees the buffer of a chunk, unless the buffer holds more than that chunk. Every view of it is empty afterwards.
 * Callers skip chunks below {@link freedBytesMin}: to compare costs less than the call.
 */
export function freeChunk(chunk: Uint8Array): void {
  if (fillsBuffer(chunk)) freeBuffer(chunk.buffer);
}

const singleUse = new WeakSet<ArrayBufferLike>();

/** Marks and returns bytes that were made for one answer, so only the carrier that sends them reads them. */
export function markSingleUse(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength >= freedBytesMin && fillsBuffer(bytes)) singleUse.add(bytes.buffer);
  return bytes;
}

/** Returns whether the buffer of these bytes may be freed once all of them are sent. */
export function isSingleUse({ buffer }: Uint8Array): boolean {
  return buffer.byteLength >= freedBytesMin && singleUse.has(buffer);
}

/** Frees a buffer. Every view of it is empty afterwards. */
export function freeBuffer(buffer: ArrayBufferLike): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * Brings the next collection of young objects nearer, for a new buffer that only the garbage collector can free.
 *
 * That collection takes a millisecond and frees such buffers, too, but 64 MiB of them have to be there before it comes
 * because of them; V8 marks the whole heap after half as many. So half as much of the young objects' space is used up.
 * Without this allocation, 1 MiB both ways over HTTP/1.1 takes 1,430 µs instead of 950, with 203 collections of the whole
 * heap in 9,000 calls instead of 31 (bench/README.md, "The effect of each idea").
 */
export function hastenCollection(bufferBytes: number): void {
  Array<undefined>(Math.min(bufferBytes >>> 4, usedUpMax));
}

/** The most that is used up for one buffer, in elements of 8 bytes: 2 MiB, because the heap may have little room. */
const usedUpMax = 256 * 1024;

/** Returns whether these bytes fill their buffer. Those from node's pool do not. */
function fillsBuffer({ byteLength, buffer }: Uint8Array): boolean {
  return byteLength === buffer.byteLength;
}
