import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** What is counted. Each is cheap to send and costs work to take. */
export type Counted = "resets" | "settings" | "pings" | "emptyData" | "ignoredFrames" | "windowUpdates";

/** Counts what a peer does too much of, per interval. */
export class FloodGuard {
  readonly #limits: Http2Limits;
  #counts: Record<Counted, number> = noCounts();

  constructor(limits: Http2Limits) {
    this.#limits = limits;
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM above the limit */
  count(what: Counted): void {
    if (++this.#counts[what] > this.#limits[what]) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, `too many ${what}`);
    }
  }

  /** A DATA frame went out: the peer may answer it with a WINDOW_UPDATE or two. */
  allowWindowUpdates(): void {
    this.#counts.windowUpdates -= 2;
  }

  /** A new interval begins. */
  restart(): void {
    this.#counts = noCounts();
  }
}

function noCounts(): Record<Counted, number> {
  return { resets: 0, settings: 0, pings: 0, emptyData: 0, ignoredFrames: 0, windowUpdates: 0 };
}
