import type { Duplex } from "node:stream";
import { ErrorCode } from "../../http/index.ts";
import { type ConnectionOptions, FrameConnection } from "./connection.ts";
import { type ConnectionParts, type FrameCallbacks, FrameHandler } from "./frame-handler.ts";
import { connectionPreface, FrameFlag } from "./frame-numbers.ts";
import type { HeaderBlock } from "./header-blocks.ts";
import { BlockEncoder, type StableFields } from "./hpack/encoder.ts";
import { type DeadlineCallbacks, Http2Deadlines } from "./http2-deadlines.ts";
import { acceptedBlockBytes } from "./http2-limits.ts";
import { encodeClientSettings, PeerSettings } from "./settings.ts";
import {
  ClientStream,
  connectionLost,
  readResponseSection,
  type ResponseReceiver,
  type ResponseSection,
  serverUnresponsive,
} from "./client-stream.ts";

interface ClientConnectionOptions extends ConnectionOptions {
  /**
   * Milliseconds without a frame after which a server with open streams gets a PING. After two PINGs without HEADERS or
   * DATA from the server, the interval is at least 310 s.
   */
  readonly keepaliveMs: number;
  /** Maximum number of concurrent streams before the server has sent SETTINGS. */
  readonly streamsBeforeSettings: number;
  /** Called with the server's stream limit when its first SETTINGS arrive, which show that it supports HTTP/2. */
  readonly onReady: (maxStreams: number) => void;
  /** Called when another stream may be available. */
  readonly onStreamAvailable: () => void;
  /** Called when the connection opens no more streams. `code` is the code from a GOAWAY or from our own error. */
  readonly onRetired: (code: number) => void;
  /** Returns the reason for a lost connection, for error messages, or `undefined` if no reason is known. */
  readonly lossReason?: () => string | undefined;
  /** Called with `true` when the first call starts, and with `false` when the last call has ended. */
  readonly onBusy: (busy: boolean) => void;
}

/**
 * An HTTP/2 client connection (RFC 9113) on a connected socket.
 *
 * The client does not allow server push, and never reconnects. All streams are reset when the connection closes.
 */
export class ClientConnection extends FrameConnection<ClientStream, ClientFrameHandler, ClientDeadlines> {
  readonly #options: ClientConnectionOptions;
  readonly #encoder = new BlockEncoder();
  /** Identifiers of `watch` streams, which stay open as long as the connection and do not count as calls. */
  readonly #watches = new Set<number>();
  #nextStreamId = 1;
  #settled = false;
  /** Whether the connection opens no more streams. */
  #retired = false;
  /** Whether the connection was closed because the server did not acknowledge a PING in time. */
  isUnresponsive = false;

  constructor(socket: Duplex, options: ClientConnectionOptions) {
    super(socket, options, {
      peerPreface: Buffer.alloc(0),
      preface: connectionPreface,
      // Empty, because the encoder adds table size updates to field blocks.
      tableUpdate: Buffer.alloc(0),
      settings: encodeClientSettings(options.limits),
      // Chunks cannot be freed, because sockets to servers reuse their read buffer.
      freesChunks: false,
    });
    this.#options = options;
  }

  /** Maximum number of concurrent streams: the minimum of the server's last SETTINGS and our own limit. */
  get maxStreams(): number {
    const { limits, streamsBeforeSettings } = this.#options;
    const maxPeer = this.#settled ? this.frameHandler.peer.concurrentStreams : streamsBeforeSettings;
    return Math.min(limits.concurrentStreams, maxPeer);
  }

  /** The reason for the lost connection, or `undefined` if the connection's owner knows no reason. */
  get lossReason(): string | undefined {
    return this.#options.lossReason?.();
  }

  /** Maximum number of bytes in a field list that the server accepts (§6.5.2). */
  get maxHeaderBytes(): number {
    return this.frameHandler.peer.headerListBytes;
  }

  /** Maximum number of bytes in an encoded header section, if the server's SETTINGS have no {@link maxHeaderBytes}. */
  get maxBlockBytes(): number {
    return this.#settled && !Number.isFinite(this.maxHeaderBytes) ? acceptedBlockBytes : Number.POSITIVE_INFINITY;
  }

  /** Number of streams that may be opened now. Negative if more streams are open than the server's new limit allows. */
  get availableStreams(): number {
    return this.#retired ? 0 : this.maxStreams - this.streams.open.size;
  }

  /** Number of open calls. Watches do not count. */
  get calls(): number {
    return this.streams.open.size - this.#watches.size;
  }

  get busy(): boolean {
    return this.calls > 0;
  }

  /**
   * Opens a stream and sends its header section. {@link availableStreams} must be above 0.
   *
   * @param stable - the fields of the header section that many requests share
   * @param varying - the other fields of the header section, encoded
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
    const { initialWindowSize } = this.frameHandler.peer;
    const stream = new ClientStream(this, id, initialWindowSize, receiver);
    if (kind === "watch") this.#watches.add(id);
    else if (!this.busy) this.#options.onBusy(true);
    this.frameHandler.opened(stream);
    stream.begin([this.#encoder.encode(stable), varying]);
    // §5.1.1: no stream identifiers remain, so the connection is drained.
    if (this.#nextStreamId > maxStreamId) this.drain();
    return stream;
  }

  /** Opens no more streams, and closes the connection after the open streams have closed. */
  drain(): void {
    this.#onGoAway(maxStreamId, ErrorCode.noError);
  }

  override forget(streamId: number): void {
    super.forget(streamId);
    this.#watches.delete(streamId);
    if (!this.busy) this.#options.onBusy(false);
    if (this.#retired) this.#closeIfDone();
    else this.#options.onStreamAvailable();
  }

  protected createFrameHandler(
    parts: ConnectionParts<ClientStream>,
    streamFailed: (code: ErrorCode) => void,
  ): ClientFrameHandler {
    return new ClientFrameHandler(parts, {
      settingsReceived: () => this.#onSettings(),
      goAwayReceived: (lastStreamId, code) => this.#onGoAway(lastStreamId, code),
      pingAcknowledged: () => undefined,
      streamFailed,
    });
  }

  protected createDeadlines(
    parts: ConnectionParts<ClientStream>,
    frameHandler: ClientFrameHandler,
    callbacks: DeadlineCallbacks,
  ): ClientDeadlines {
    const keepaliveMs = (): number => this.#options.keepaliveMs;
    const destroy = (): void => {
      this.isUnresponsive = true;
      callbacks.destroy();
    };
    return new ClientDeadlines(parts, frameHandler, { ...callbacks, destroy }, keepaliveMs, () => this.busy);
  }

  /** The server has closed its side, so responses can no longer be completed. */
  protected onPeerEnd(): void {
    this.shutDown(this.#options.limits.lingerMs);
  }

  /** Always 0, because servers do not open streams. */
  protected get lastAcceptedId(): number {
    return 0;
  }

  protected override goAway(lastStreamId: number, code: ErrorCode): void {
    this.#retire(code);
    super.goAway(lastStreamId, code);
  }

  protected abortOpenStreams(): void {
    this.#retire(ErrorCode.noError);
    const code = this.isUnresponsive ? serverUnresponsive : connectionLost;
    for (const stream of this.streams.open.values()) stream.receiveReset(code);
  }

  #onSettings(): void {
    this.#encoder.applyTableSize(this.frameHandler.peer.headerTableBytes);
    const isFirst = !this.#settled;
    this.#settled = true;
    if (isFirst) this.#options.onReady(this.frameHandler.peer.concurrentStreams);
    else this.#options.onStreamAvailable();
  }

  // §6.8: the server has not processed streams above the last identifier, so their requests can be retried.
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

const maxStreamId = 2 ** 31 - 1;

/** Callbacks for the events that {@link ClientFrameHandler} reports to a connection. */
interface ClientCallbacks extends FrameCallbacks {
  settingsReceived(): void;
  /** Called when the server accepts no streams above this identifier (§6.8). */
  goAwayReceived(lastStreamId: number, code: number): void;
}

/** Handles a server's frames. A header section is a response. GOAWAY refuses streams above the last identifier. */
class ClientFrameHandler extends FrameHandler<ClientStream, ResponseSection> {
  readonly #callbacks: ClientCallbacks;
  /** Number of received header and trailer sections. */
  sections = 0;

  constructor(parts: ConnectionParts<ClientStream>, callbacks: ClientCallbacks) {
    super(parts, new PeerSettings(0), callbacks);
    this.#callbacks = callbacks;
  }

  opened(stream: ClientStream): void {
    const { guard, streams } = this.parts;
    streams.open.add(stream);
    streams.lastStreamId = stream.id;
    guard.openedStreams++;
  }

  protected handleSection(stream: ClientStream | undefined, block: HeaderBlock<ResponseSection>): void {
    const { limits } = this.parts;
    this.sections++;
    if (stream === undefined) return this.onLateStreamFrame(block.streamId);
    const { decoded, flags } = block;
    const endStream = (flags & FrameFlag.endStream) !== 0;
    // Only the stream fails, because a section above our own limit is not a protocol error.
    if (decoded.listBytes > limits.headerListBytes) return stream.receiveTooLarge(endStream);
    // The parsed section is cached, because servers repeat field blocks.
    const section = (decoded.head ??= readResponseSection(decoded.fields));
    if (section === undefined || !isExpected(section, stream, endStream)) this.refuse(stream, ErrorCode.protocolError);
    else if (section.httpStatus === 0) stream.receiveEnd(section);
    else if (section.httpStatus < 200) this.parts.guard.count("ignoredFrames");
    else stream.receiveHead(section, endStream);
  }

  // §5.1: a server may send frames before our RST_STREAM arrives. Late frames do not count as a flood, because a
  // receive window may contain many small messages. Late frames are accepted on every closed stream, because the list
  // of recent resets may be too short for all cancelled calls.
  protected override onFrameAfterEnd(_stream: ClientStream | undefined, streamId: number): void {
    this.onLateStreamFrame(streamId);
  }

  protected handleGoAway(lastStreamId: number, code: number): void {
    this.#callbacks.goAwayReceived(lastStreamId, code);
  }

  protected handleStreamReset(stream: ClientStream, code: number): void {
    stream.receiveReset(code);
  }

  protected settingsApplied(): void {
    this.#callbacks.settingsReceived();
  }
}

// The head comes first, then the trailer, which ends the stream (§8.1). An interim response must not end the stream,
// and 101 is not allowed (§8.6).
function isExpected({ httpStatus }: ResponseSection, { headReceived }: ClientStream, endStream: boolean): boolean {
  if (headReceived) return httpStatus === 0 && endStream;
  return httpStatus >= 200 || (httpStatus !== 0 && httpStatus !== 101 && !endStream);
}

// Maximum number of PINGs before the server sends HEADERS or DATA again. A gRPC server closes a connection at the
// fourth PING within five minutes if it sent no data in between (gRFC A8).
const maxFrequentPings = 2;

/** Minimum silence before further PINGs, in milliseconds: 310 s. gRPC servers allow one PING in five minutes. */
const rarePingMs = 310_000;

/**
 * The deadlines on a client connection. Keepalive PINGs are sent only while streams are open. If a server acknowledges
 * PINGs but sends no response, further PINGs are rare.
 */
class ClientDeadlines extends Http2Deadlines<ClientStream> {
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
    const maySend = this.#pings < maxFrequentPings || this.#framesReceived !== this.#framesAtPing;
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
