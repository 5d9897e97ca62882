import { Code, ConnectError } from "@connectrpc/connect";

/** Reads the descriptors of one upstream, without holding up those of others for longer than a limit. */
export class DescriptorReader {
  readonly #read: (signal: AbortSignal) => Promise<Uint8Array>;
  readonly #onLate: () => void;
  /** The reading that is under way. */
  #reading: Promise<Uint8Array | Error> | undefined;
  /** What was read after its limit; the next reading takes it. */
  #late: Uint8Array | Error | undefined;

  /** @param onLate - called when a reading has ended that was not waited for */
  constructor(read: (signal: AbortSignal) => Promise<Uint8Array>, onLate: () => void) {
    this.#read = read;
    this.#onLate = onLate;
  }

  /** Reads, and resolves to the descriptors or to what is wrong. Never rejects. @param limitMs - how long to wait */
  async read(signal: AbortSignal, limitMs: number): Promise<Uint8Array | Error> {
    const late = this.#late;
    this.#late = undefined;
    if (late !== undefined) return late;
    const reading = (this.#reading ??= this.#start(signal));
    if (limitMs === Number.POSITIVE_INFINITY) return await reading;
    const limit = Promise.withResolvers<undefined>();
    const timer = setTimeout(limit.resolve, limitMs, undefined);
    const result = await Promise.race([reading, limit.promise]);
    clearTimeout(timer);
    if (result !== undefined) return result;
    void reading.then((ended) => {
      this.#late = ended;
      this.#onLate();
    });
    return new ConnectError(`no descriptors within ${limitMs} ms`, Code.DeadlineExceeded);
  }

  #start(signal: AbortSignal): Promise<Uint8Array | Error> {
    // A source of the program's own may throw instead of rejecting: it must not end before it is noted as under way.
    return (async () => await this.#read(signal))()
      .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
      .finally(() => {
        this.#reading = undefined;
      });
  }
}

/** Returns whether an error says that a server cannot be reached, rather than that something is wrong with it. */
export function isUnreachable(error: Error): boolean {
  for (let each: unknown = error, left = causesMax; each instanceof Error && left > 0; each = each.cause, left--) {
    if (each instanceof ConnectError) return each.code === Code.Unavailable || each.code === Code.DeadlineExceeded;
    if (each.name === "TimeoutError") return true;
  }
  return false;
}

/** Causes that are followed. 5: nothing here wraps an error more often. */
const causesMax = 5;
