import { type ConnectionParts, type DeadlineCallbacks, Http2Deadlines } from "../http2/index.ts";
import type { ClientFrameHandler } from "./client-frame-handler.ts";
import type { ClientStream } from "./client-stream.ts";

// Maximum number of PINGs before the server sends HEADERS or DATA again. A gRPC server closes a connection at the
// fourth PING within five minutes if it sent no data in between (gRFC A8).
const frequentPingsMax = 2;

/** Minimum silence before further PINGs, in milliseconds: 310 s. gRPC servers allow one PING in five minutes. */
const rarePingMs = 310_000;

/**
 * The deadlines on a client connection. Keepalive PINGs are sent only while streams are open. If a server acknowledges
 * PINGs but sends no response, further PINGs are rare.
 */
export class ClientDeadlines extends Http2Deadlines<ClientStream> {
  readonly #frameHandler: ClientFrameHandler;
  readonly #keepaliveMs: () => number;
  readonly #hasCalls: () => boolean;
  /** PINGs since the server's last HEADERS or DATA frame, and number of HEADERS and DATA frames at the last PING. */
  #pings = 0;
  #framesAtPing = 0;

  constructor(
    parts: ConnectionParts<ClientStream>,
    frameHandler: ClientFrameHandler,
    callbacks: DeadlineCallbacks,
    keepaliveMs: () => number,
    hasCalls: () => boolean,
  ) {
    super(parts, frameHandler, callbacks);
    this.#frameHandler = frameHandler;
    this.#keepaliveMs = keepaliveMs;
    this.#hasCalls = hasCalls;
  }

  /** A watch does not keep the connection open. */
  protected override get isBusy(): boolean {
    return this.#hasCalls();
  }

  protected override get silenceMs(): number {
    if (this.parts.streams.open.size === 0) return Number.POSITIVE_INFINITY;
    const keepaliveMs = this.#keepaliveMs();
    const maySend = this.#pings < frequentPingsMax || this.#framesReceived !== this.#framesAtPing;
    return maySend ? keepaliveMs : Math.max(keepaliveMs, rarePingMs);
  }

  protected override ping(): void {
    const frames = this.#framesReceived;
    if (frames !== this.#framesAtPing) this.#pings = 0;
    this.#framesAtPing = frames;
    this.#pings++;
    super.ping();
  }

  /** Number of HEADERS and DATA frames that the server has sent. */
  get #framesReceived(): number {
    return this.parts.receiveFlow.frames + this.#frameHandler.sections;
  }
}
