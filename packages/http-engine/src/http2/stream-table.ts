/** Why a stream is not open (RFC 9113 §5.1). */
export type Absence = "idle" | "closed" | "reset-by-us" | "beyond-go-away";

// Frames on a reset stream may arrive for about a round trip. This number covers many streams.
const rememberedResets = 1024;

/** A connection's streams, and why others are not open (RFC 9113 §5.1, §5.1.1). */
export class StreamTable<Stream> {
  /** The open streams, by identifier. */
  readonly open: Map<number, Stream> = new Map();
  /**
   * The highest stream that the client has opened. §5.1.1: opening it closes all idle streams with lower identifiers.
   */
  lastStreamId = 0;
  /** Streams that we have reset, whose last frames may still arrive. The oldest are removed. */
  readonly #resetByUs = new Set<number>();
  /** Whether our final GOAWAY was sent. Higher streams are ignored. */
  goAwaySent = false;

  rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= rememberedResets) return;
    for (const oldest of this.#resetByUs) {
      this.#resetByUs.delete(oldest);
      break;
    }
  }

  /** Returns why a stream is not open. Even identifiers belong to the server, which opens none. */
  absenceOf(streamId: number): Absence {
    if (streamId % 2 === 0) return "idle";
    if (streamId > this.lastStreamId) return this.goAwaySent ? "beyond-go-away" : "idle";
    return this.#resetByUs.has(streamId) ? "reset-by-us" : "closed";
  }
}
