import { busyUs, serverCore } from "./cores.ts";
import type { Load, Percentiles } from "./load/load.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";

/** What one round of a load showed of a server. */
export interface Measurement {
  /** The server's CPU time per request. */
  readonly cpuUsPerRequest: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
  /** The share of the server's core that something else took; 0 where that cannot be known. */
  readonly foreignLoad: number;
}

/** How long a round is. */
export interface RoundLength {
  readonly warmUpS: number;
  readonly measuredS: number;
}

/** A round with more of the server's core gone to others than this is not worth its figures. */
export const foreignLoadMax = 0.1;

/** Starts the server, warms it up, puts the load on it and stops it. Rejects when it does not answer as it should. */
export async function measure(
  { load, probe }: Pick<Scenario, "load" | "probe">,
  subject: Subject,
  length: RoundLength,
): Promise<Measurement> {
  const server = await startServer(subject.program, subject.environment);
  try {
    await probe(server.port);
    const { rssBytes: rssIdleBytes } = await server.settle();
    await load(server.port, length.warmUpS);
    return { rssIdleBytes, ...(await measureLoad(server, load, length.measuredS)) };
  } catch (reason) {
    throw new Error(`${subject.name} cannot be measured`, { cause: reason });
  } finally {
    await server.stop();
  }
}

async function measureLoad(
  server: RunningServer,
  load: Load,
  durationS: number,
): Promise<Omit<Measurement, "rssIdleBytes">> {
  const busyBefore = busyUs(serverCore);
  const startedMs = performance.now();
  const before = await server.usage();
  const seen = await load(server.port, durationS);
  const after = await server.usage();
  const wallUs = (performance.now() - startedMs) * 1_000;
  const busyAfter = busyUs(serverCore);
  if (seen.failures > 0) throw new Error(`${String(seen.failures)} of ${String(seen.requests)} requests failed`);
  const ownUs = after.cpuUs - before.cpuUs;
  const busy = busyBefore === undefined || busyAfter === undefined ? ownUs : busyAfter - busyBefore;
  return {
    cpuUsPerRequest: ownUs / seen.requests,
    requestsPerS: seen.requests / seen.durationS,
    latencyUs: seen.latencyUs,
    rssLoadedBytes: after.rssBytes,
    foreignLoad: Math.max(0, busy - ownUs) / wallUs,
  };
}
