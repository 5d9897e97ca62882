import type { Duplex } from "node:stream";
import { ErrorCode } from "@plantstore/http";
import {
  BlockEncoder,
  type ConnectionOptions,
  type ConnectionParts,
  connectionPreface,
  type DeadlineCallbacks,
  encodeClientSettings,
  FrameConnection,
  type StableFields,
} from "../http2/index.ts";
import { ClientDeadlines } from "./client-deadlines.ts";
import { ClientRules } from "./client-rules.ts";
import { type ResponseReceiver, ClientStream, connectionLost, serverFrozen } from "./client-stream.ts";

/** Options for {@link ClientConnection}. */
export interface ClientConnectionOptions extends ConnectionOptions {
  /**
   * Milliseconds without a frame after which a server with open streams is sent a PING. After two PINGs without a
   * response in between, the minimum is 310 s.
   */
  readonly keepaliveMs: number;
  /** The stream limit before the server has sent SETTINGS. */
  readonly streamsBeforeSettings: number;
  /**
   * Called with the server's stream limit when its first SETTINGS have arrived. They show that the server supports
   * HTTP/2, and may allow more streams.
   */
  readonly onReady: (streamsMax: number) => void;
  /** Called when another stream may be available. */
  readonly onStreamAvailable: () => void;
  /** Called when the connection opens no more streams, with the code from a GOAWAY or from our own error. */
  readonly onRetired: (code: number) => void;
  /** Returns why the connection was lost, for errors, or `undefined` for no reason. */
  readonly lossReason?: () => string | undefined;
  /** Called with `true` when the first call starts, and with `false` when the last one has ended. */
  readonly onBusy: (busy: boolean) => void;
}

/**
 * An HTTP/2 client connection (RFC 9113) on a connected socket.
 *
 * The client does not allow server push, and never reconnects. When it closes, its streams are reset.
 */
export class ClientConnection extends FrameConnection<ClientStream, ClientRules, ClientDeadlines> {
  readonly #options: ClientConnectionOptions;
  readonly #encoder = new BlockEncoder();
  /** Streams that stay open as long as the connection, and are not calls. */
  readonly #watches = new Set<number>();
  #nextStreamId = 1;
  #settled = false;
  /** Whether no more streams are opened. */
  #retired = false;
  /** Whether the connection was closed because the server did not acknowledge a PING in time. */
  isFrozen = false;

  constructor(socket: Duplex, options: ClientConnectionOptions) {
    super(socket, options, {
      peerPreface: Buffer.alloc(0),
      preface: connectionPreface,
      // The encoder starts blocks with its own size updates.
      tableUpdate: Buffer.alloc(0),
      settings: encodeClientSettings(options.limits),
      // Sockets to servers reuse their read buffer.
      freesChunks: false,
    });
    this.#options = options;
  }

  /** The concurrent stream limit: the smaller of the server's last SETTINGS and our own limit. */
  get streamsMax(): number {
    const { limits, streamsBeforeSettings } = this.#options;
    const peerMax = this.#settled ? this.rules.peer.concurrentStreams : streamsBeforeSettings;
    return Math.min(limits.concurrentStreams, peerMax);
  }

  /** Why the connection was lost, if its owner knows a reason. */
  get lossReason(): string | undefined {
    return this.#options.lossReason?.();
  }

  /** The largest field list that the server accepts, in bytes (§6.5.2). */
  get headerBytesMax(): number {
    return this.rules.peer.headerListBytes;
  }

  /** How many streams may be opened now. Negative after the server has lowered its limit. */
  get availableStreams(): number {
    return this.#retired ? 0 : this.streamsMax - this.streams.open.size;
  }

  /** How many calls are open, without watches. */
  get calls(): number {
    return this.streams.open.size - this.#watches.size;
  }

  /** Whether a call is open. */
  get busy(): boolean {
    return this.calls > 0;
  }

  /**
   * Opens a stream and sends its header section. {@link availableStreams} must be above 0.
   *
   * @param stable - the section's first part
   * @param varying - the second part, encoded
   * @param kind - a `watch` keeps neither the connection open nor the process alive
   */
  open(
    stable: StableFields,
    varying: Uint8Array,
    receiver: ResponseReceiver,
    kind: "call" | "watch" = "call",
  ): ClientStream {
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    const { initialWindowSize } = this.rules.peer;
    const stream = new ClientStream(this, id, initialWindowSize, receiver);
    if (kind === "watch") this.#watches.add(id);
    else if (!this.busy) this.#options.onBusy(true);
    this.rules.opened(stream);
    stream.begin([this.#encoder.encode(stable), varying]);
    // §5.1.1: the stream identifiers are exhausted.
    if (this.#nextStreamId > streamIdMax) this.drain();
    return stream;
  }

  /** Opens no more streams, and closes the connection after the open ones have closed. */
  drain(): void {
    this.#onGoAway(streamIdMax, ErrorCode.noError);
  }

  override forget(streamId: number): void {
    super.forget(streamId);
    this.#watches.delete(streamId);
    if (!this.busy) this.#options.onBusy(false);
    if (this.#retired) this.#closeIfDone();
    else this.#options.onStreamAvailable();
  }

  protected createRules(parts: ConnectionParts<ClientStream>, streamFailed: (code: ErrorCode) => void): ClientRules {
    return new ClientRules(parts, {
      settingsReceived: () => this.#onSettings(),
      goAwayReceived: (lastStreamId, code) => this.#onGoAway(lastStreamId, code),
      pingAcknowledged: () => undefined,
      streamFailed,
    });
  }

  protected createDeadlines(
    parts: ConnectionParts<ClientStream>,
    rules: ClientRules,
    callbacks: DeadlineCallbacks,
  ): ClientDeadlines {
    const keepaliveMs = (): number => this.#options.keepaliveMs;
    const destroy = (): void => {
      this.isFrozen = true;
      callbacks.destroy();
    };
    return new ClientDeadlines(parts, rules, { ...callbacks, destroy }, keepaliveMs, () => this.busy);
  }

  /** The server has closed its side, so no response can be completed any more. */
  protected onPeerEnd(): void {
    this.shutDown(this.#options.limits.lingerMs);
  }

  /** Servers do not open streams. */
  protected get lastAcceptedId(): number {
    return 0;
  }

  protected override fail(error: unknown): void {
    this.#retire(ErrorCode.internalError);
    super.fail(error);
  }

  protected abortOpenStreams(): void {
    this.#retire(ErrorCode.noError);
    const code = this.isFrozen ? serverFrozen : connectionLost;
    for (const stream of this.streams.open.values()) stream.receiveReset(code);
  }

  #onSettings(): void {
    this.#encoder.applyTableSize(this.rules.peer.headerTableBytes);
    const isFirst = !this.#settled;
    this.#settled = true;
    if (isFirst) this.#options.onReady(this.rules.peer.concurrentStreams);
    else this.#options.onStreamAvailable();
  }

  /** §6.8: streams above the last one were not processed, and can be sent again elsewhere. */
  #onGoAway(lastStreamId: number, code: number): void {
    this.#retire(code);
    for (const stream of this.streams.open.values()) {
      if (stream.id > lastStreamId) stream.receiveReset(ErrorCode.refusedStream);
    }
    this.#closeIfDone();
  }

  #retire(code: number): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#options.onRetired(code);
  }

  #closeIfDone(): void {
    if (this.busy || this.isClosing) return;
    this.goAway(this.lastAcceptedId, ErrorCode.noError);
    this.shutDown(this.#options.limits.stallTimeoutMs);
  }
}

const streamIdMax = 2 ** 31 - 1;
