import { busyUs, serverCore } from "./cores.ts";
import type { Load, Percentiles } from "./load/load.ts";
import type { Probe } from "./probe.ts";
import type { RunningServer } from "./running-server.ts";
import type { Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";

/** A server in a comparison, and the load that it is put under. */
export interface Contender {
  readonly subject: Subject;
  readonly load: Load;
  /** Sends one request of the load, to see that the server does the work before it is measured. */
  readonly probe: Probe;
}

/** What one turn of load showed of a server. */
export interface Turn {
  /** The server's CPU time per request. */
  readonly cpuUs: number;
  /** The same as a multiple of the first contender's in the same turn. */
  readonly timesFloor: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
  /** The share of the server's core that something else took meanwhile; 0 where that cannot be known. */
  readonly foreignLoad: number;
}

/** All turns of one server. */
export interface Turns {
  readonly subject: Subject;
  readonly turns: readonly Turn[];
}

/** How much is measured. */
export interface Length {
  /** How often all servers are started afresh: two processes of one program may differ by a tenth. */
  readonly rounds: number;
  /** Turns of each server in a round. */
  readonly turns: number;
}

/** A turn in which others took more than this of the server's core tells little about the server. */
export const foreignLoadMax = 0.1;

const warmUpS = 2;
const turnS = 1;

/**
 * Compares servers by turns: all are up, and each is loaded for a second, in the opposite order from turn to turn.
 *
 * On a machine that is shared, the same work takes a third more from one minute to the next. Within a turn it hardly
 * does, so what counts is the ratio to the first contender in the same turn, of which the table has the median. A turn
 * that others disturbed is repeated, as often in all as there are turns; then it counts, and the table says so.
 */
export async function compareByTurns(contenders: readonly Contender[], length: Length): Promise<readonly Turns[]> {
  const seen = contenders.map(({ subject }) => ({ subject, turns: new Array<Turn>() }));
  for (let round = 0; round < length.rounds; round += 1) {
    const all = await runRound(contenders, length.turns);
    for (const [i, turns] of all.entries()) seen[i]?.turns.push(...turns);
  }
  return seen;
}

interface Started extends Contender {
  readonly server: RunningServer;
  readonly rssIdleBytes: number;
}

/** Returns the turns of each contender. */
async function runRound(contenders: readonly Contender[], turns: number): Promise<readonly (readonly Turn[])[]> {
  const started: Started[] = [];
  try {
    for (const contender of contenders) started.push(await start(contender));
    const taken: (readonly Turn[])[] = [];
    for (let repeats = turns; taken.length < turns;) {
      const turn = await takeTurn(taken.length % 2 === 0 ? started : started.toReversed(), started);
      if (repeats === 0 || turn.every(({ foreignLoad }) => foreignLoad <= foreignLoadMax)) taken.push(turn);
      else repeats -= 1;
    }
    return contenders.map((_, i) => taken.flatMap((turn) => turn[i] ?? []));
  } finally {
    for (const { server } of started) await server.stop();
  }
}

async function start(contender: Contender): Promise<Started> {
  const { subject, load, probe } = contender;
  const server = await startServer(subject.program, subject.environment);
  try {
    await probe(server.port);
    const { rssBytes: rssIdleBytes } = await server.settle();
    await load(server.port, warmUpS);
    return { ...contender, server, rssIdleBytes };
  } catch (reason) {
    await server.stop();
    throw new Error(`${subject.name} cannot be measured`, { cause: reason });
  }
}

/** Loads each server in the order given, and returns what was seen in the order of `all`. */
async function takeTurn(order: readonly Started[], all: readonly Started[]): Promise<readonly Turn[]> {
  const seen = new Map<Started, Omit<Turn, "timesFloor">>();
  for (const one of order) seen.set(one, await measure(one));
  const first = all[0] === undefined ? undefined : seen.get(all[0]);
  return all.flatMap((one) => {
    const turn = seen.get(one);
    return turn === undefined ? [] : [{ ...turn, timesFloor: turn.cpuUs / (first?.cpuUs ?? Number.NaN) }];
  });
}

async function measure({ subject, server, load, rssIdleBytes }: Started): Promise<Omit<Turn, "timesFloor">> {
  const busyBefore = busyUs(serverCore);
  const startedMs = performance.now();
  const before = await server.usage();
  const seen = await load(server.port, turnS);
  const after = await server.usage();
  const wallUs = (performance.now() - startedMs) * 1_000;
  const busyAfter = busyUs(serverCore);
  if (seen.failures > 0)
    throw new Error(`${subject.name}: ${String(seen.failures)} of ${String(seen.requests)} requests failed`);
  const ownUs = after.cpuUs - before.cpuUs;
  const busy = busyBefore === undefined || busyAfter === undefined ? ownUs : busyAfter - busyBefore;
  return {
    cpuUs: ownUs / seen.requests,
    requestsPerS: seen.requests / seen.durationS,
    latencyUs: seen.latencyUs,
    rssIdleBytes,
    rssLoadedBytes: after.rssBytes,
    foreignLoad: Math.max(0, busy - ownUs) / wallUs,
  };
}
