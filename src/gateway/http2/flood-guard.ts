import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** What is counted. Each is cheap to send and costs work to take. */
export type Counted = "resets" | "settings" | "pings" | "emptyData" | "ignoredFrames" | "windowUpdates";

// More frames than are ever on their way at once: a gigabyte of the largest ones.
const allowanceMax = 65_536;

/** Counts what a peer does too much of, per interval. */
export class FloodGuard {
  readonly #limits: Http2Limits;
  readonly #counts: Record<Counted, number> = {
    resets: 0,
    settings: 0,
    pings: 0,
    emptyData: 0,
    ignoredFrames: 0,
    windowUpdates: 0,
  };

  constructor(limits: Http2Limits) {
    this.#limits = limits;
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM above the limit */
  count(what: Counted): void {
    if (++this.#counts[what] > this.#limits[what]) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, `too many ${what}`);
    }
  }

  /** We did something that the peer may well answer with so many of them. What is not used adds up, but not for ever. */
  allow(what: Counted, times: number): void {
    this.#counts[what] = Math.max(this.#counts[what] - times, -allowanceMax);
  }

  /** A new interval begins. What was allowed for and is not used up stays allowed: answers take their time. */
  restart(): void {
    for (const what of Object.keys(this.#counts) as Counted[]) {
      this.#counts[what] = Math.min(0, this.#counts[what]);
    }
  }
}
