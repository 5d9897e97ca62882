import { Deadlines, checkIntervalFor } from "./deadlines.ts";
import { ErrorCode } from "@plantstore/gateway/exchange";
import type { Http2Stream } from "./http2-stream.ts";

/** The deadlines of a server's connection: also those of bodies that calls wait for, and of clients that go on sending. */
export class ServerDeadlines extends Deadlines<Http2Stream> {
  /** Runs while a stream is answered whose peer is still sending. */
  #lingerClock: NodeJS.Timeout | undefined;

  /** Notes that a stream is answered whose peer may go on sending for a while. */
  startLingering(): void {
    const { lingerMs } = this.parts.limits;
    // So short a deadline has a clock of its own: with the other one, idle connections would look for it all the time.
    this.#lingerClock ??= setInterval(() => this.#lookAtLingering(), checkIntervalFor(lingerMs)).unref();
  }

  override stop(): void {
    super.stop();
    clearInterval(this.#lingerClock);
  }

  protected override checkSideTimeouts(nowMs: number): void {
    const { streams, limits } = this.parts;
    for (const stream of streams.open.values()) {
      if (stream.receiver?.body?.isAwaited !== true) continue;
      if (nowMs - stream.openedAtMs > limits.requestTimeoutMs) stream.reset(ErrorCode.cancel);
    }
  }

  #lookAtLingering(): void {
    const nowMs = performance.now();
    const { streams, limits } = this.parts;
    let lingering = 0;
    for (const stream of streams.open.values()) {
      if (stream.respondedAtMs === 0) continue;
      // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
      if (nowMs - stream.respondedAtMs >= limits.lingerMs) stream.reset(ErrorCode.noError);
      else lingering += 1;
    }
    if (lingering > 0) return;
    clearInterval(this.#lingerClock);
    this.#lingerClock = undefined;
  }
}
