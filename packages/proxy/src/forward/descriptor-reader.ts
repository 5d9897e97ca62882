import { Code, ConnectError } from "@connectrpc/connect";
import type { ServiceDescriptors } from "./descriptors.ts";

/** A descriptor set that was read. */
export interface ReadDescriptors {
  readonly set: Uint8Array;
  /** Its services, or why they cannot be used, or `undefined` if the set is in use already. */
  readonly descriptors: ServiceDescriptors | Error | undefined;
}

/** How long a caller waits for an upstream's descriptors. */
export interface ReadLimits {
  /** Resolves when the set must have been read. */
  readonly read: Promise<unknown>;
  /** Resolves when the set must have been described. */
  readonly describe: Promise<unknown>;
  /** The limit for messages. */
  readonly ms: number;
}

/** A read's two steps, each of which resolves to the error that prevented it. */
interface Reading {
  readonly read: Promise<Uint8Array | Error>;
  readonly described: Promise<ReadDescriptors | Error>;
}

/** Reads and describes one upstream's set. A slow read delays the other upstreams only for a limited time. */
export class DescriptorReader {
  readonly #read: (signal: AbortSignal) => Promise<Uint8Array>;
  readonly #describe: (set: Uint8Array) => Promise<ReadDescriptors>;
  readonly #onLate: () => void;
  /** The read in progress. */
  #reading: Reading | undefined;
  /** The result from a read that finished after its limit. The next {@link read} returns it. */
  #lateResult: ReadDescriptors | Error | undefined;

  /** @param onLate - called when a read finishes after its limit */
  constructor(
    read: (signal: AbortSignal) => Promise<Uint8Array>,
    describe: (set: Uint8Array) => Promise<ReadDescriptors>,
    onLate: () => void,
  ) {
    this.#read = read;
    this.#describe = describe;
    this.#onLate = onLate;
  }

  /** Resolves to the descriptors, or to the error that prevented the read. Never rejects. */
  async read(signal: AbortSignal, limits: ReadLimits): Promise<ReadDescriptors | Error> {
    const earlierResult = this.#lateResult;
    this.#lateResult = undefined;
    if (earlierResult !== undefined) return earlierResult;
    const reading = (this.#reading ??= this.#start(signal));
    const isLate = limits.read.then(() => undefined);
    const read = await Promise.race([reading.read, isLate]);
    const result = read && (await Promise.race([reading.described, limits.describe.then(() => undefined)]));
    if (result !== undefined) return result;
    void reading.described.then((lateResult) => {
      this.#lateResult = lateResult;
      this.#onLate();
    });
    return new ConnectError(`reading the descriptors timed out after ${limits.ms} ms`, Code.DeadlineExceeded);
  }

  #start(signal: AbortSignal): Reading {
    // An async function, because the application's source may throw synchronously.
    const read = (async () => await this.#read(signal))().catch(toError);
    const described = read
      .then(async (set) => (set instanceof Error ? set : await this.#describe(set)))
      .finally(() => {
        this.#reading = undefined;
      });
    return { read, described };
  }
}

/** Returns a thrown value as an error. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns whether an error means that a server cannot be reached, rather than that its response is invalid. */
export function isUnreachable(error: Error): boolean {
  for (let each: unknown = error, level = 0; each instanceof Error && level < causesMax; each = each.cause, level++) {
    if (each instanceof ConnectError) return each.code === Code.Unavailable || each.code === Code.DeadlineExceeded;
    if (each.name === "TimeoutError") return true;
  }
  return false;
}

/** Maximum nested causes that are checked. 5 is more than any code here creates. */
const causesMax = 5;
