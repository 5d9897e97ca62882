import type { Http2Stream } from "./http2-stream.ts";

/** What the number of a stream that is not open says of it (RFC 9113 §5.1). */
export type Absence = "idle" | "closed" | "reset-by-us" | "beyond-go-away";

// Frames of a stream that was reset come in for about a round trip; this is many of them.
const rememberedResets = 1024;

/** Which streams there are on a connection, and what became of the others (RFC 9113 §5.1, §5.1.1). */
export class StreamTable {
  readonly #open = new Map<number, Http2Stream>();
  /** Streams that we have reset, whose last frames may still be on their way. The oldest are forgotten. */
  readonly #resetByUs = new Set<number>();
  #lastStreamId = 0;
  #sealed = false;

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** The highest number that the peer has used, of those that we took. */
  get lastStreamId(): number {
    return this.#lastStreamId;
  }

  get(streamId: number): Http2Stream | undefined {
    return this.#open.get(streamId);
  }

  values(): Iterable<Http2Stream> {
    return this.#open.values();
  }

  /** §5.1.1: a new stream closes all idle ones below it. */
  use(streamId: number): void {
    this.#lastStreamId = streamId;
  }

  add(stream: Http2Stream): void {
    this.#open.set(stream.id, stream);
  }

  remove(stream: Http2Stream): void {
    this.#open.delete(stream.id);
  }

  /** Our GOAWAY has named the last stream: those above it are not there. */
  seal(): void {
    this.#sealed = true;
  }

  rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= rememberedResets) return;
    for (const oldest of this.#resetByUs) {
      this.#resetByUs.delete(oldest);
      break;
    }
  }

  /** Why a stream is not open. Even numbers are ours to open, and we never do. */
  absenceOf(streamId: number): Absence {
    if (streamId % 2 === 0) return "idle";
    if (streamId > this.#lastStreamId) return this.#sealed ? "beyond-go-away" : "idle";
    return this.#resetByUs.has(streamId) ? "reset-by-us" : "closed";
  }
}
