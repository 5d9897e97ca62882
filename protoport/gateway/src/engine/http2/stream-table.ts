import { type IdentifiedStream, OpenStreams } from "./open-streams.ts";

/** The reason why a stream is not open (RFC 9113 §5.1). */
type Absence = "idle" | "closed" | "reset-by-us" | "beyond-go-away";

// Maximum number of remembered streams that we have reset. Frames on a reset stream may arrive for about a round trip.
const rememberedResets = 1024;

/** The open streams on a connection, and the reasons why other streams are not open (RFC 9113 §5.1, §5.1.1). */
export class StreamTable<Stream extends IdentifiedStream> {
  readonly open: OpenStreams<Stream> = new OpenStreams();
  /** Identifier of the highest stream that the client has opened. Lower idle streams count as closed (§5.1.1). */
  lastStreamId = 0;
  /** Identifiers of streams that we have reset, because frames may still arrive. The oldest identifiers are removed. */
  readonly #resetByUs = new Set<number>();
  /** Whether our final GOAWAY was sent. Streams with higher identifiers are ignored. */
  goAwaySent = false;

  rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= rememberedResets) return;
    for (const oldest of this.#resetByUs) {
      this.#resetByUs.delete(oldest);
      break;
    }
  }

  /** Returns why a stream is not open. The server opens no streams, so even identifiers are idle. */
  absenceOf(streamId: number): Absence {
    if (streamId % 2 === 0) return "idle";
    if (streamId > this.lastStreamId) return this.goAwaySent ? "beyond-go-away" : "idle";
    return this.#resetByUs.has(streamId) ? "reset-by-us" : "closed";
  }
}
