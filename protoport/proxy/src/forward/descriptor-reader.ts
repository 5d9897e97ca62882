import { Code, ConnectError } from "@connectrpc/connect";
import { noBytes } from "@protoport/gateway/exchange";
import type { ServiceDescriptors } from "./descriptors.ts";

/** A descriptor set that was read. */
export interface ReadDescriptors {
  readonly set: Uint8Array;
  /** The set's services, or an error if the services cannot be used. Undefined if the set is already in use. */
  readonly descriptors: ServiceDescriptors | Error | undefined;
}

/** Time limits for a caller that waits for an upstream's descriptors. */
interface ReadLimits {
  /** Resolves at the time limit for reading the set. */
  readonly read: Promise<unknown>;
  /** Resolves at the time limit for describing the set. */
  readonly describe: Promise<unknown>;
  /** The time limit in milliseconds, for messages. */
  readonly ms: number;
}

/** A running read. Each promise resolves to its result or to an error. */
interface PendingRead {
  readonly read: Promise<Uint8Array | Error>;
  readonly described: Promise<ReadDescriptors | Error>;
  /** Whether a caller's time limit has passed, so that the next {@link DescriptorReader.read} returns the result. */
  isLate: boolean;
}

/** Reads and describes an upstream's descriptor set. A slow read delays the other upstreams only for a limited time. */
export class DescriptorReader {
  readonly #read: (signal: AbortSignal) => Promise<Uint8Array>;
  readonly #describe: (set: Uint8Array, inUse: Uint8Array) => Promise<ReadDescriptors>;
  readonly #onLate: () => void;
  /** The read in progress. */
  #reading: PendingRead | undefined;
  /** The result from a read that exceeded its time limit. The next {@link read} returns the result. */
  #lateResult: ReadDescriptors | Error | undefined;

  /** @param onLate - called once when a read finishes after a caller's time limit */
  constructor(
    read: (signal: AbortSignal) => Promise<Uint8Array>,
    describe: (set: Uint8Array, inUse: Uint8Array) => Promise<ReadDescriptors>,
    onLate: () => void,
  ) {
    this.#read = read;
    this.#describe = describe;
    this.#onLate = onLate;
  }

  /**
   * Resolves to the descriptors, or to the error that prevented the read. Never rejects.
   *
   * @param inUse - the set in use, which is not described again
   */
  async read(signal: AbortSignal, limits: ReadLimits, inUse: Uint8Array = noBytes): Promise<ReadDescriptors | Error> {
    const earlierResult = this.#lateResult;
    this.#lateResult = undefined;
    if (earlierResult !== undefined) return earlierResult;
    const reading = (this.#reading ??= this.#start(signal, inUse));
    const timeout = limits.read.then(() => undefined);
    const read = await Promise.race([reading.read, timeout]);
    const result = read && (await Promise.race([reading.described, limits.describe.then(() => undefined)]));
    if (result !== undefined) return result;
    if (!reading.isLate) void reading.described.then((lateResult) => this.#keep(lateResult));
    reading.isLate = true;
    return new ConnectError(`reading the descriptors timed out after ${limits.ms} ms`, Code.DeadlineExceeded);
  }

  #start(signal: AbortSignal, inUse: Uint8Array): PendingRead {
    const read = this.#read(signal).catch(toError);
    const described = read
      .then(async (set) => (set instanceof Error ? set : await this.#describe(set, inUse)))
      .finally(() => {
        this.#reading = undefined;
      });
    return { read, described, isLate: false };
  }

  #keep(lateResult: ReadDescriptors | Error): void {
    this.#lateResult = lateResult;
    this.#onLate();
  }
}

/** Returns a thrown value as an error. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns whether an error means that a server cannot be reached, rather than that its response is invalid. */
export function isUnreachable(error: Error): boolean {
  for (
    let each: unknown = error, level = 0;
    each instanceof Error && level < maxShownCauses;
    each = each.cause, level++
  ) {
    if (each instanceof ConnectError) return each.code === Code.Unavailable || each.code === Code.DeadlineExceeded;
    if (each.name === "TimeoutError") return true;
  }
  return false;
}

/** Maximum nested causes that are checked. This package creates fewer. */
const maxShownCauses = 5;

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
