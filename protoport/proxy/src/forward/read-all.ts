import type { DescriptorReader, ReadDescriptors, ReadLimits } from "./descriptor-reader.ts";

/** Maximum milliseconds for which a slow upstream delays the others. Most reads take one round trip. */
const slowReadMs = 5_000;

/**
 * Reads the descriptor sets of all upstreams concurrently. With several upstreams, waits for slow upstreams for
 * {@link slowReadMs}.
 *
 * @param isFirst - whether no descriptors are in use, so that the call waits until at least one set is described, even
 * after the time limit
 * @param sets - each upstream's set in use
 */
export async function readAll(
  readers: readonly DescriptorReader[],
  signal: AbortSignal,
  isFirst: boolean,
  sets: readonly Uint8Array[],
): Promise<readonly (ReadDescriptors | Error)[]> {
  const limit = Promise.withResolvers<void>();
  const someDescribed = Promise.withResolvers<void>();
  const timer = readers.length > 1 ? setTimeout(limit.resolve, slowReadMs) : undefined;
  const limits: ReadLimits = {
    read: limit.promise,
    describe: isFirst ? Promise.all([limit.promise, someDescribed.promise]) : limit.promise,
    ms: slowReadMs,
  };
  const readOne = async (reader: DescriptorReader, at: number): Promise<ReadDescriptors | Error> => {
    const result = await reader.read(signal, limits, sets[at]);
    if (!(result instanceof Error || result.descriptors instanceof Error)) someDescribed.resolve();
    return result;
  };
  const read = await Promise.all(readers.map(readOne));
  clearTimeout(timer);
  return read;
}
