import { refuseUnknownOptions, required } from "../http/index.ts";
import type { Readiness } from "./readiness.ts";

/** The durations of the phases of a graceful shutdown. */
export interface DrainTimes {
  /** Milliseconds in which a server serves calls although it is not ready. Load balancers need this delay to react. */
  readonly delayMs: number;
  /** Milliseconds that running calls may take after the delay. Calls that take longer are aborted. */
  readonly timeoutMs: number;
}

/** The defaults for {@link DrainTimes}. The sum is below the 30 s after which Kubernetes kills a container. */
export const drainTimesDefault: DrainTimes = { delayMs: 5_000, timeoutMs: 20_000 };

/** The maximum in milliseconds for each of the {@link DrainTimes}. Values above an hour are most likely typos. */
export const drainMsMax = 3_600_000;

/**
 * Stops a server behind a load balancer without losing a call. The server reports that it is not ready, and serves
 * calls for the delay. Then the server refuses new connections (on HTTP/2 with a GOAWAY, RFC 9113 §6.8) and finishes
 * running calls.
 *
 * @param server - a gateway or a proxy
 * @returns a promise that resolves when the last call has ended, at the latest after the sum of both times
 * @throws TypeError for unknown or missing times
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
