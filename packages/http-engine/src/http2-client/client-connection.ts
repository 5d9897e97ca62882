import type { Duplex } from "node:stream";
import { ErrorCode } from "@plantstore/gateway/exchange";
import {
  BlockEncoder,
  type ConnectionOptions,
  type ConnectionParts,
  connectionPreface,
  type DeadlineEffects,
  encodeClientSettings,
  FrameConnection,
  type StableFields,
} from "../http2/index.ts";
import { ClientDeadlines } from "./client-deadlines.ts";
import { ClientRules } from "./client-rules.ts";
import { type ResponseReceiver, ClientStream, connectionLost } from "./client-stream.ts";

/** Options of {@link ClientConnection}. */
export interface ClientConnectionOptions extends ConnectionOptions {
  /** Milliseconds of silence after which a server with open streams is sent a PING. */
  readonly keepaliveMs: number;
  /** Streams that are opened before the server has said how many it takes. */
  readonly streamsBeforeSettings: number;
  /**
   * Called when the server has sent its first SETTINGS, with how many streams it takes: it does speak HTTP/2, and there
   * may be room for other streams.
   */
  readonly onReady: (streamsMax: number) => void;
  /** Called when there may be room for another stream. */
  readonly onStreamAvailable: () => void;
  /** Called when the connection takes no more streams, with the code of a GOAWAY or of our own error. */
  readonly onRetired: (code: number) => void;
  /** Called when the first stream opens, and when the last one has closed. */
  readonly onBusy: (busy: boolean) => void;
}

/**
 * The client's side of an HTTP/2 connection (RFC 9113), on a socket that is connected.
 *
 * Never pushed to, and never reconnects: when it is over, its streams are told so.
 */
export class ClientConnection extends FrameConnection<ClientStream, ClientRules, ClientDeadlines> {
  readonly #options: ClientConnectionOptions;
  readonly #encoder = new BlockEncoder();
  /** Streams that are open for as long as the connection is, and no calls. */
  readonly #watches = new Set<number>();
  #nextStreamId = 1;
  #settled = false;
  /** Whether no more streams are opened. */
  #retired = false;

  constructor(socket: Duplex, options: ClientConnectionOptions) {
    super(socket, options, {
      peerPreface: Buffer.alloc(0),
      preface: connectionPreface,
      // The encoder begins blocks with its own.
      tableUpdate: Buffer.alloc(0),
      settings: encodeClientSettings(options.limits),
      // Sockets to servers read into the same memory again and again.
      freesChunks: false,
    });
    this.#options = options;
  }

  /** How many streams may be open at the same time, by the server's last SETTINGS and our own limit. */
  get streamsMax(): number {
    const { limits, streamsBeforeSettings } = this.#options;
    const peerMax = this.#settled ? this.rules.peer.concurrentStreams : streamsBeforeSettings;
    return Math.min(limits.concurrentStreams, peerMax);
  }

  /** How many more streams may be opened now. Negative after the server has lowered its limit. */
  get availableStreams(): number {
    return this.#retired ? 0 : this.streamsMax - this.streams.open.size;
  }

  /** How many requests wait for their answers, watches aside. */
  get calls(): number {
    return this.streams.open.size - this.#watches.size;
  }

  /** Whether a call waits for its answer. */
  get busy(): boolean {
    return this.calls > 0;
  }

  /**
   * Opens a stream and sends its header section. There must be {@link availableStreams}.
   *
   * @param stable - how the section begins
   * @param varying - the rest of it, encoded
   * @param kind - a `watch` keeps neither the connection nor the process
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
    // §5.1.1: the numbers of a connection are used up.
    if (this.#nextStreamId > streamIdMax) this.drain();
    return stream;
  }

  /** Opens no more streams, and ends the connection once those that are open have ended. */
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
    effects: DeadlineEffects,
  ): ClientDeadlines {
    const keepaliveMs = (): number => this.#options.keepaliveMs;
    return new ClientDeadlines(parts, rules, effects, keepaliveMs, () => this.busy);
  }

  /** No answer can be completed any more. */
  protected onPeerEnd(): void {
    this.end(this.#options.limits.lingerMs);
  }

  /** Servers open no streams. */
  protected get lastAcceptedId(): number {
    return 0;
  }

  protected override fail(error: unknown): void {
    this.#retire(ErrorCode.internalError);
    super.fail(error);
  }

  protected abortOpenStreams(): void {
    this.#retire(ErrorCode.noError);
    for (const stream of this.streams.open.values()) stream.receiveReset(connectionLost);
  }

  #onSettings(): void {
    this.#encoder.settle(this.rules.peer.headerTableBytes);
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
    if (this.busy || this.ended) return;
    this.goAway(this.lastAcceptedId, ErrorCode.noError);
    this.end(this.#options.limits.stallTimeoutMs);
  }
}

const streamIdMax = 2 ** 31 - 1;
