import { refuseUnknownOptions, required } from "@plantstore/http";
import type { Readiness } from "./readiness.ts";

/** A graceful shutdown's phases. */
export interface DrainTimes {
  /**
   * Milliseconds for which the server keeps serving while it reports that it is not ready, so that load balancers
   * notice.
   */
  readonly delayMs: number;
  /** Milliseconds that running calls may take after that. The rest are aborted. */
  readonly timeoutMs: number;
}

/** The defaults for {@link DrainTimes}: together less than the 30 s after which Kubernetes kills a container. */
export const drainTimesDefault: DrainTimes = { delayMs: 5_000, timeoutMs: 20_000 };

/**
 * The maximum for each of the {@link DrainTimes} in milliseconds: an hour, longer than any orchestrator waits and short
 * enough to catch typos.
 */
export const drainMsMax = 3_600_000;

/**
 * Stops a server behind a load balancer without losing a call: reports that it is not ready, serves for the delay, then
 * makes the server refuse new connections (on HTTP/2 with a GOAWAY, RFC 9113 §6.8) and finish running calls.
 *
 * @param server - a gateway or a proxy
 * @returns a promise that resolves when the last call has ended, at the latest after both times. Rejects with a
 * TypeError for unknown or missing times
 */
export async function drainGracefully(
  server: { drain(timeoutMs: number): Promise<void> },
  readiness: Pick<Readiness, "startDraining">,
  times: DrainTimes,
): Promise<void> {
  refuseUnknownOptions(times, { delayMs: required, timeoutMs: required }, "drainGracefully");
  const { delayMs, timeoutMs } = times;
  readiness.startDraining();
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  await server.drain(timeoutMs);
}
