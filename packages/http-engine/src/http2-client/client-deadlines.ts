import { type ConnectionParts, type DeadlineEffects, Deadlines, type Handshake } from "../http2/index.ts";
import type { ClientStream } from "./client-stream.ts";

/** The deadlines of a client's connection. Keepalive PINGs are sent only while streams are open (gRFC A8). */
export class ClientDeadlines extends Deadlines<ClientStream> {
  readonly #keepaliveMs: () => number;
  readonly #hasCalls: () => boolean;

  constructor(
    parts: ConnectionParts<ClientStream>,
    handshake: Handshake,
    effects: DeadlineEffects,
    keepaliveMs: () => number,
    hasCalls: () => boolean,
  ) {
    super(parts, handshake, effects);
    this.#keepaliveMs = keepaliveMs;
    this.#hasCalls = hasCalls;
  }

  /** A watch does not keep the connection open. */
  protected override get isBusy(): boolean {
    return this.#hasCalls();
  }

  protected override get silenceMs(): number {
    return this.parts.streams.open.size > 0 ? this.#keepaliveMs() : Number.POSITIVE_INFINITY;
  }
}
