import { ErrorCode, noBytes } from "../../http/index.ts";
import { FrameFlag, FrameType } from "./frame-numbers.ts";
import { isTrailer } from "./field-rules.ts";
import { type ConnectionParts, type FrameCallbacks, FrameHandler } from "./frame-handler.ts";
import type { HeaderBlock } from "./header-blocks.ts";
import { protocolError } from "./http2-error.ts";
import type { Http2Stream } from "./http2-stream.ts";
import { type Http2RequestHead, readRequestHead } from "./request-head.ts";
import { PeerSettings } from "./settings.ts";

/** Callbacks for the events that {@link ServerFrameHandler} reports to a connection. */
interface ServerCallbacks extends FrameCallbacks {
  /** Called with each request's header. `endStream` is true if the request has no body. */
  opened(streamId: number, head: Http2RequestHead, endStream: boolean): void;
}

/** Number of bytes in a field block that all clients accept: nghttp2 closes the connection after a longer field. */
const acceptedBlockBytes = 64 * 1024;

/** Handles a client's frames. A header section is a request, and GOAWAY has no effect. */
export class ServerFrameHandler extends FrameHandler<Http2Stream, Http2RequestHead> {
  readonly #callbacks: ServerCallbacks;

  constructor(parts: ConnectionParts<Http2Stream>, callbacks: ServerCallbacks) {
    super(parts, new PeerSettings(1), callbacks);
    this.#callbacks = callbacks;
  }

  /** §6.2, §8.1: handles a request's header section or, on an open stream, the trailer section. */
  protected handleSection(stream: Http2Stream | undefined, block: HeaderBlock<Http2RequestHead>): void {
    const { streams } = this.parts;
    if (stream !== undefined) return this.#handleTrailer(stream, block);
    // §5.1.1: client-initiated streams have odd identifiers, each higher than the previous one.
    if (block.streamId % 2 === 0) throw protocolError("a client-initiated stream identifier must be odd");
    if (block.streamId > streams.lastStreamId && !streams.goAwaySent) this.#handleRequest(block);
    else this.onFrameAfterEnd(undefined, block.streamId);
  }

  /** Ignores GOAWAY, because servers open no streams and the client's streams continue. */
  protected handleGoAway(): void {}

  protected handleStreamReset(stream: Http2Stream, code: number): void {
    const { guard, limits } = this.parts;
    stream.receiveReset(code);
    // Late resets are not counted, because the number of open streams limits late resets.
    if (stream.respondedAtMs === 0 && performance.now() - stream.openedAtMs < limits.rapidResetMs)
      guard.count(stream.headSent ? "resetsAfterHead" : "resets");
  }

  protected settingsApplied(): void {
    const { headerListBytes } = this.peer;
    const announcedBytes = Number.isFinite(headerListBytes) ? headerListBytes : 0;
    this.parts.output.blockBytesMax = Math.max(acceptedBlockBytes, announcedBytes);
  }

  #handleTrailer(stream: Http2Stream, { flags, decoded, streamId }: HeaderBlock<Http2RequestHead>): void {
    if (stream.remoteEnded) return this.onFrameAfterEnd(stream, streamId);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    const wellFormed = endStream && isTrailer(decoded.fields);
    const error = wellFormed ? stream.receive(noBytes, 0, true) : ErrorCode.protocolError;
    if (error !== undefined) this.refuse(stream, error);
  }

  #handleRequest({ streamId, flags, decoded, dependsOn }: HeaderBlock<Http2RequestHead>): void {
    const { guard, limits, streams, sendFlow } = this.parts;
    streams.lastStreamId = streamId;
    guard.openedStreams++;
    // The parsed head is cached, because clients repeat field blocks.
    const head = (decoded.head ??= readRequestHead(decoded.fields, decoded.listBytes));
    const endStream = (flags & FrameFlag.endStream) !== 0;
    // §8.1.1: Content-Length must match the body, and a request with END_STREAM has no body.
    const hasWrongLength = endStream && head?.contentLength !== undefined && head.contentLength > 0;
    if (head === undefined || hasWrongLength || dependsOn === streamId) {
      this.#rejectNew(streamId, ErrorCode.protocolError);
      guard.count("resets");
    } else if (streams.open.size >= limits.concurrentStreams) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      // A refused stream counts as a reset only after the client has acknowledged our stream limit (§5.1.2).
      if (this.settingsAcknowledged) guard.count("resets");
    } else if (sendFlow.queuedBytes >= limits.queuedBytes) this.#rejectNew(streamId, ErrorCode.refusedStream);
    else this.#callbacks.opened(streamId, head, endStream);
  }

  /** Resets a stream that was not opened. */
  #rejectNew(streamId: number, code: ErrorCode): void {
    this.parts.output.numbers(FrameType.rstStream, streamId, code);
    this.parts.streams.rememberReset(streamId);
    this.#callbacks.streamFailed(code);
  }
}
