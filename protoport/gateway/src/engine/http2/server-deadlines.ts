import { Http2Deadlines, checkIntervalFor } from "./http2-deadlines.ts";
import { ErrorCode } from "../../http/index.ts";
import type { Http2Stream } from "./http2-stream.ts";

/** Deadlines on a server connection, including deadlines for request bodies and for bytes after a response. */
export class ServerDeadlines extends Http2Deadlines<Http2Stream> {
  /** Timer that runs while a client may still send a request body after the complete response. */
  #lingerTimer: NodeJS.Timeout | undefined;

  /** Called when a response is complete and the client may still send for a while. */
  startLingering(): void {
    const { lingerMs } = this.parts.limits;
    // The short linger deadline has a separate timer, so that idle connections are not checked too often.
    this.#lingerTimer ??= setInterval(() => this.#checkLingering(), checkIntervalFor(lingerMs)).unref();
  }

  override stop(): void {
    super.stop();
    clearInterval(this.#lingerTimer);
  }

  protected override checkSideTimeouts(nowMs: number): void {
    const { streams, limits } = this.parts;
    for (const stream of streams.open.values()) {
      if (stream.receiver?.body?.isAwaited !== true) continue;
      if (nowMs - stream.openedAtMs > limits.requestTimeoutMs) stream.reset(ErrorCode.cancel);
    }
  }

  #checkLingering(): void {
    const nowMs = performance.now();
    const { streams, limits } = this.parts;
    let lingering = 0;
    for (const stream of streams.open.values()) {
      if (stream.respondedAtMs === 0) continue;
      // After a complete response, a server may reset the stream with NO_ERROR (RFC 9113 §8.1).
      if (nowMs - stream.respondedAtMs >= limits.lingerMs) stream.reset(ErrorCode.noError);
      else lingering += 1;
    }
    if (lingering > 0) return;
    clearInterval(this.#lingerTimer);
    this.#lingerTimer = undefined;
  }
}
