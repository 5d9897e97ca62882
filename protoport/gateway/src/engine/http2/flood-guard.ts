import { ErrorCode } from "../../http/index.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Output } from "./output.ts";

/** Events that are cheap for a peer to cause and expensive for us to handle. */
type CountedEvent =
  | "resets"
  | "resetsAfterHead"
  | "settings"
  | "pings"
  | "emptyData"
  | "ignoredFrames"
  | "windowUpdates";

// Maximum credit in frames. 65,536 frames of the maximum size are 1 GiB, more than is ever in flight.
const maxAllowance = 65_536;

// Browsers send PRIORITY_UPDATE with each request, and some clients send RST_STREAM after each response. Clients built
// on gRPC's C core enlarge the stream and connection windows with every call.
const allowedPerStream = 2;

/** Limits how often a peer may cause each event per interval. */
export class FloodGuard {
  readonly #limits: Http2Limits;
  readonly #output: Pick<Output, "headerBlocks" | "dataFrames">;
  readonly #counts: Record<CountedEvent, number> = {
    resets: 0,
    resetsAfterHead: 0,
    settings: 0,
    pings: 0,
    emptyData: 0,
    ignoredFrames: 0,
    windowUpdates: 0,
  };
  /** For each event, the credit that the peer had earned until the last update. */
  readonly #granted: Record<CountedEvent, number> = { ...this.#counts };
  /** Number of streams that the client has opened. The frame handlers of both sides increment this number. */
  openedStreams = 0;
  /** Number of received DATA frames with bytes. The frame handler increments this number. */
  filledDataFrames = 0;
  #openedBefore = 0;

  constructor(limits: Http2Limits, output: Pick<Output, "headerBlocks" | "dataFrames">) {
    this.#limits = limits;
    this.#output = output;
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM above the limit */
  count(what: CountedEvent): void {
    this.#grant(what);
    const limit = this.#limits[what];
    if (++this.#counts[what] <= limit) return;
    // A proxy forwards resets from many clients, but most of the proxy's streams complete.
    const opened = this.openedStreams - this.#openedBefore;
    const isReset = what === "resets" || what === "resetsAfterHead";
    if (isReset && this.#counts[what] <= opened * this.#limits.resetShare) return;
    throw new ConnectionError(ErrorCode.enhanceYourCalm, `too many ${what}`);
  }

  /** Starts a new interval. Unused credit is kept, because the peer may respond to a frame an interval later. */
  restart(): void {
    for (const event of Object.keys(this.#counts) as CountedEvent[]) {
      this.#grant(event);
      this.#counts[event] = Math.min(0, this.#counts[event]);
    }
    this.#openedBefore = this.openedStreams;
  }

  // Unused credit accumulates up to a limit.
  #grant(what: CountedEvent): void {
    const earned = this.#earned(what);
    this.#counts[what] = Math.max(this.#counts[what] - (earned - this.#granted[what]), -maxAllowance);
    this.#granted[what] = earned;
  }

  #earned(what: CountedEvent): number {
    const { headerBlocks, dataFrames } = this.#output;
    switch (what) {
      // Clients that measure the bandwidth send a PING for each DATA frame or for each frame that they receive.
      case "pings":
        return headerBlocks + dataFrames;
      // A peer may send one WINDOW_UPDATE for the connection and one for the stream after each DATA frame.
      case "windowUpdates":
        return this.openedStreams * allowedPerStream + dataFrames * 2;
      case "ignoredFrames":
        return this.openedStreams * allowedPerStream;
      // Some peers and proxies send an empty DATA frame with each response or message.
      case "emptyData":
        return (this.openedStreams + this.filledDataFrames) * allowedPerStream;
      default:
        return 0;
    }
  }
}
