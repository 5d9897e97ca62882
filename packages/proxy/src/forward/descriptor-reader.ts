import { Code, ConnectError } from "@connectrpc/connect";

/** Reads the descriptors of one upstream, and delays those of others by a limited time only. */
export class DescriptorReader {
  readonly #read: (signal: AbortSignal) => Promise<Uint8Array>;
  readonly #onLate: () => void;
  /** The read in progress. */
  #reading: Promise<Uint8Array | Error> | undefined;
  /** The result of a read that finished after its limit; the next {@link read} returns it. */
  #lateResult: Uint8Array | Error | undefined;

  /** @param onLate - called when a read finishes after its limit */
  constructor(read: (signal: AbortSignal) => Promise<Uint8Array>, onLate: () => void) {
    this.#read = read;
    this.#onLate = onLate;
  }

  /** Resolves to the descriptors or to why they could not be read. Never rejects. @param limitMs - how long to wait */
  async read(signal: AbortSignal, limitMs: number): Promise<Uint8Array | Error> {
    const late = this.#lateResult;
    this.#lateResult = undefined;
    if (late !== undefined) return late;
    const reading = (this.#reading ??= this.#start(signal));
    if (limitMs === Number.POSITIVE_INFINITY) return await reading;
    const limit = Promise.withResolvers<undefined>();
    const timer = setTimeout(limit.resolve, limitMs, undefined);
    const result = await Promise.race([reading, limit.promise]);
    clearTimeout(timer);
    if (result !== undefined) return result;
    void reading.then((lateResult) => {
      this.#lateResult = lateResult;
      this.#onLate();
    });
    return new ConnectError(`reading the descriptors timed out after ${limitMs} ms`, Code.DeadlineExceeded);
  }

  #start(signal: AbortSignal): Promise<Uint8Array | Error> {
    // An async function, because a source of the application may throw instead of rejecting.
    return (async () => await this.#read(signal))()
      .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
      .finally(() => {
        this.#reading = undefined;
      });
  }
}

/** Returns whether an error means that a server cannot be reached, rather than that its response is wrong. */
export function isUnreachable(error: Error): boolean {
  for (let each: unknown = error, level = 0; each instanceof Error && level < causesMax; each = each.cause, level++) {
    if (each instanceof ConnectError) return each.code === Code.Unavailable || each.code === Code.DeadlineExceeded;
    if (each.name === "TimeoutError") return true;
  }
  return false;
}

/** Levels of causes that are checked. 5: nothing here wraps an error more often. */
const causesMax = 5;
