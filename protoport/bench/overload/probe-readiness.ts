import { once } from "node:events";
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds between two probes, and the timeout for a response, as in usual load balancers. */
const intervalMs = 100;
const responseTimeoutMs = 3_000;

/**
 * Requests `/readyz` repeatedly, each time on a new connection, until the signal aborts.
 *
 * @returns each probe's latency in milliseconds, or Infinity without a response with status 200 in time
 */
export async function probeReadiness(port: number, signal: AbortSignal): Promise<readonly number[]> {
  const latencies: number[] = [];
  while (!signal.aborted) {
    const startedMs = performance.now();
    const isReady = await isReadyInTime(port);
    latencies.push(isReady ? performance.now() - startedMs : Infinity);
    await sleep(intervalMs);
  }
  return latencies;
}

async function isReadyInTime(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(responseTimeoutMs);
  try {
    const [response] = await once(get({ port, path: "/readyz", agent: false, signal }), "response", { signal });
    response.resume();
    return response.statusCode === 200;
  } catch {
    return false;
  }
}
