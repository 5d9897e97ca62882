import { type ConnectionParts, type DeadlineEffects, Deadlines, type Handshake } from "../index.ts";
import type { ClientStream } from "./client-stream.ts";

/** The deadlines of a client's connection, whose server is sent a PING only while calls wait for it (gRFC A8). */
export class ClientDeadlines extends Deadlines<ClientStream> {
  readonly #keepaliveMs: () => number;

  constructor(
    parts: ConnectionParts<ClientStream>,
    handshake: Handshake,
    effects: DeadlineEffects,
    keepaliveMs: () => number,
  ) {
    super(parts, handshake, effects);
    this.#keepaliveMs = keepaliveMs;
  }

  protected override get silenceMs(): number {
    return this.parts.streams.open.size > 0 ? this.#keepaliveMs() : Number.POSITIVE_INFINITY;
  }
}
