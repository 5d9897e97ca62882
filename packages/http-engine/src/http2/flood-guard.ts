import { ErrorCode } from "@plantstore/gateway/exchange";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Output } from "./output.ts";

/** The events that are counted: cheap for a peer to cause, and costly to handle. */
export type Counted = "resets" | "settings" | "pings" | "emptyData" | "ignoredFrames" | "windowUpdates";

// More frames than are ever in flight: a gigabyte of the largest ones.
const allowanceMax = 65_536;

// Browsers send PRIORITY_UPDATE with each request, and some clients send RST_STREAM after each answer. Clients built on
// gRPC's C core open the windows of the stream and of the connection with every call.
const allowedPerStream = 2;

/** Counts, per interval, the events that a peer may not cause too often. */
export class FloodGuard {
  readonly #limits: Http2Limits;
  readonly #output: Pick<Output, "headerBlocks" | "dataFrames">;
  readonly #counts: Record<Counted, number> = {
    resets: 0,
    settings: 0,
    pings: 0,
    emptyData: 0,
    ignoredFrames: 0,
    windowUpdates: 0,
  };
  /** The credit that the peer had earned when it was last added. */
  readonly #granted: Record<Counted, number> = { ...this.#counts };
  /** Streams that the client has opened, be it the peer or us; incremented by the rules of the side. */
  openedStreams = 0;
  #openedBefore = 0;

  constructor(limits: Http2Limits, output: Pick<Output, "headerBlocks" | "dataFrames">) {
    this.#limits = limits;
    this.#output = output;
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM above the limit */
  count(what: Counted): void {
    this.#grant(what);
    const limit = this.#limits[what];
    if (++this.#counts[what] <= limit) return;
    // A proxy sends the resets of many clients, but most of its streams are answered.
    const opened = this.openedStreams - this.#openedBefore;
    if (what === "resets" && this.#counts.resets <= opened * this.#limits.resetShare) return;
    throw new ConnectionError(ErrorCode.enhanceYourCalm, `too many ${what}`);
  }

  /** Starts a new interval. Credit that is not used up stays, because answers take their time. */
  restart(): void {
    for (const what of Object.keys(this.#counts) as Counted[]) {
      this.#grant(what);
      this.#counts[what] = Math.min(0, this.#counts[what]);
    }
    this.#openedBefore = this.openedStreams;
  }

  /**
   * Subtracts from the count the credit that the peer has earned since the last time. Unused credit adds up, but not
   * without bound.
   */
  #grant(what: Counted): void {
    const earned = this.#earned(what);
    this.#counts[what] = Math.max(this.#counts[what] - (earned - this.#granted[what]), -allowanceMax);
    this.#granted[what] = earned;
  }

  /** Returns how many of these the peer may have sent for a good reason. */
  #earned(what: Counted): number {
    const { headerBlocks, dataFrames } = this.#output;
    switch (what) {
      // Clients that measure the bandwidth send a PING for each DATA frame that they receive, or for any frame.
      case "pings":
        return headerBlocks + dataFrames;
      // One for the connection and one for the stream of each DATA frame.
      case "windowUpdates":
        return this.openedStreams * allowedPerStream + dataFrames * 2;
      case "ignoredFrames":
        return this.openedStreams * allowedPerStream;
      default:
        return 0;
    }
  }
}
