import { ErrorCode } from "@plantstore/http";
import {
  type ConnectionParts,
  type FrameCallbacks,
  FrameFlag,
  FrameRules,
  type HeaderBlock,
  PeerSettings,
} from "../http2/index.ts";
import { type ResponseSection, readResponseSection } from "./response-section.ts";
import type { ClientStream } from "./client-stream.ts";

/** The events that {@link ClientRules} report to a connection. */
export interface ClientCallbacks extends FrameCallbacks {
  /** Called when the server has sent SETTINGS. */
  settingsReceived(): void;
  /** Called when the server accepts no streams above this one (§6.8). */
  goAwayReceived(lastStreamId: number, code: number): void;
}

/** Handles a server's frames. A header section is a response, and GOAWAY refuses streams above its last one. */
export class ClientRules extends FrameRules<ClientStream, ResponseSection> {
  readonly #callbacks: ClientCallbacks;
  /** How many header and trailer sections were received. */
  sections = 0;

  constructor(parts: ConnectionParts<ClientStream>, callbacks: ClientCallbacks) {
    super(parts, new PeerSettings(0), callbacks);
    this.#callbacks = callbacks;
  }

  /** Adds a stream that we have opened. */
  opened(stream: ClientStream): void {
    const { guard, streams } = this.parts;
    streams.open.set(stream.id, stream);
    streams.lastStreamId = stream.id;
    guard.openedStreams++;
  }

  protected handleSection(block: HeaderBlock<ResponseSection>): void {
    const { limits, streams } = this.parts;
    this.sections++;
    const stream = streams.open.get(block.streamId);
    if (stream === undefined) return this.onLateStreamFrame(block.streamId);
    const { decoded, flags } = block;
    const endStream = (flags & FrameFlag.endStream) !== 0;
    // The section exceeds our own limit, which is not a protocol error.
    if (decoded.listBytes > limits.headerListBytes) return stream.receiveTooLarge(endStream);
    // A block that is sent repeatedly is parsed once.
    const section = (decoded.head ??= readResponseSection(decoded.fields));
    if (section === undefined || !isExpected(section, stream, endStream)) this.refuse(stream, ErrorCode.protocolError);
    else if (section.httpStatus === 0) stream.receiveEnd(section);
    else if (section.httpStatus < 200) this.parts.guard.count("ignoredFrames");
    else stream.receiveHead(section, endStream);
  }

  /**
   * §5.1: frames that the server sent before it received our RST_STREAM. They are not counted as a flood. A window may
   * contain many small messages, and more calls may be cancelled at the same time than resets are remembered.
   */
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

/**
 * Returns whether a section is allowed now (§8.1): first the head, then the trailer, which ends the stream. An interim
 * response must not end it, and 101 is not allowed (§8.6).
 */
function isExpected({ httpStatus }: ResponseSection, { headReceived }: ClientStream, endStream: boolean): boolean {
  if (headReceived) return httpStatus === 0 && endStream;
  return httpStatus >= 200 || (httpStatus !== 0 && httpStatus !== 101 && !endStream);
}
