import { Code, ConnectError } from "@connectrpc/connect";

/** Reads the descriptors of one upstream; a slow read delays the other upstreams only for a limited time. */
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

  /**
   * Resolves to the descriptors, or to the error that prevented the read. Never rejects. @param limitMs - how long to
   * wait
   */
  async read(signal: AbortSignal, limitMs: number): Promise<Uint8Array | Error> {
    const earlierResult = this.#lateResult;
    this.#lateResult = undefined;
    if (earlierResult !== undefined) return earlierResult;
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
    // An async function, because the application's source may throw synchronously.
    return (async () => await this.#read(signal))()
      .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
      .finally(() => {
        this.#reading = undefined;
      });
  }
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
