import { ErrorCode, noBytes } from "@plantstore/gateway/exchange";
import { FrameFlag, FrameType } from "./frame-numbers.ts";
import { isTrailer } from "./field-rules.ts";
import { type ConnectionParts, type FrameEffects, FrameRules } from "./frame-rules.ts";
import type { HeaderBlock } from "./header-blocks.ts";
import { protocolError } from "./http2-error.ts";
import type { Http2Stream } from "./http2-stream.ts";
import { type Http2RequestHead, readRequestHead } from "./request-head.ts";
import { PeerSettings } from "./settings.ts";

/** The reports of {@link ServerRules} to a connection. */
export interface ServerEffects extends FrameEffects {
  /** Called when a request has begun; with `ended` it is complete. */
  opened(streamId: number, head: Http2RequestHead, headTooLarge: boolean, ended: boolean): void;
}

/** What frames of a client mean: a header section is a request, and GOAWAY ends nothing. */
export class ServerRules extends FrameRules<Http2Stream, Http2RequestHead> {
  readonly #effects: ServerEffects;

  constructor(parts: ConnectionParts<Http2Stream>, effects: ServerEffects) {
    super(parts, new PeerSettings(1), effects);
    this.#effects = effects;
  }

  /** §6.2, §8.1: a request or, on an open stream, its trailer section. */
  protected handleSection(block: HeaderBlock<Http2RequestHead>): void {
    const { streams } = this.parts;
    const stream = streams.open.get(block.streamId);
    if (stream !== undefined) return this.#takeTrailer(stream, block);
    // §5.1.1: a client's streams have odd numbers, each higher than the one before.
    if (block.streamId % 2 === 0) throw protocolError("a client-initiated stream identifier must be odd");
    if (block.streamId > streams.lastStreamId && !streams.sealed) this.#takeRequest(block);
    else this.onFrameAfterEnd(undefined, block.streamId);
  }

  /** The client accepts no more streams, and we open none; its own streams go on. */
  protected handleGoAway(): void {}

  protected handleStreamReset(stream: Http2Stream, code: number): void {
    const { guard, limits } = this.parts;
    stream.receiveReset(code);
    // A late reset is not a rapid one: there cannot be more late ones at a time than open streams.
    if (stream.respondedAtMs === 0 && performance.now() - stream.openedAtMs < limits.rapidResetMs) guard.count("resets");
  }

  protected settingsApplied(): void {}

  #takeTrailer(stream: Http2Stream, { flags, decoded, streamId }: HeaderBlock<Http2RequestHead>): void {
    if (stream.remoteEnded) return this.onFrameAfterEnd(stream, streamId);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    const wellFormed = endStream && isTrailer(decoded.fields);
    const error = wellFormed ? stream.receive(noBytes, 0, true) : ErrorCode.protocolError;
    if (error !== undefined) this.refuse(stream, error);
  }

  #takeRequest({ streamId, flags, decoded, dependsOn }: HeaderBlock<Http2RequestHead>): void {
    const { guard, limits, streams, sendFlow } = this.parts;
    streams.lastStreamId = streamId;
    guard.openedStreams++;
    // A block that is sent repeatedly is parsed once.
    const head = (decoded.head ??= readRequestHead(decoded.fields));
    const ended = (flags & FrameFlag.endStream) !== 0;
    // §8.1.1: an announced length must be that of the body, and this request has no body.
    const contradicts = ended && head?.contentLength !== undefined && head.contentLength > 0;
    if (head === undefined || contradicts || dependsOn === streamId) {
      this.#rejectNew(streamId, ErrorCode.protocolError);
      guard.count("resets");
    } else if (streams.open.size >= limits.concurrentStreams) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      // §5.1.2: a peer that does not know our limit yet cannot respect it.
      if (this.settingsAcknowledged) guard.count("resets");
    } else if (sendFlow.queuedBytes >= limits.queuedBytes) this.#rejectNew(streamId, ErrorCode.refusedStream);
    else this.#effects.opened(streamId, head, decoded.listBytes > limits.headerListBytes, ended);
  }

  /** Resets a stream for which no work has been done. */
  #rejectNew(streamId: number, code: ErrorCode): void {
    this.parts.output.numbers(FrameType.rstStream, streamId, code);
    this.parts.streams.rememberReset(streamId);
    this.#effects.streamFailed(code);
  }
}
