import { ErrorCode } from "../../http/index.ts";
import {
  type ConnectionParts,
  type FrameCallbacks,
  FrameFlag,
  FrameHandler,
  type HeaderBlock,
  PeerSettings,
} from "../http2/index.ts";
import { type ResponseSection, readResponseSection } from "./response-section.ts";
import type { ClientStream } from "./client-stream.ts";

/** Callbacks for the events that {@link ClientFrameHandler} reports to a connection. */
interface ClientCallbacks extends FrameCallbacks {
  settingsReceived(): void;
  /** Called when the server accepts no streams above this identifier (§6.8). */
  goAwayReceived(lastStreamId: number, code: number): void;
}

/** Handles a server's frames. A header section is a response. GOAWAY refuses streams above the last identifier. */
export class ClientFrameHandler extends FrameHandler<ClientStream, ResponseSection> {
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
