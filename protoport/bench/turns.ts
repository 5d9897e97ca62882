import { busyUs, serverCore } from "./cores.ts";
import type { Load, Percentiles } from "./load/load.ts";
import type { Probe } from "./probe.ts";
import type { RunningServer } from "./running-server.ts";
import type { Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";

/** A server in a comparison, with its load. */
export interface Contender {
  readonly subject: Subject;
  readonly load: Load;
  /** Sends one request from the load, to check before the measurement that the server handles the request. */
  readonly probe: Probe;
}

/** The result of one turn on a server. */
export interface Turn {
  /** The turn's round, from 0. */
  readonly round: number;
  /** The server's CPU time per request. */
  readonly cpuUs: number;
  /** The CPU time as a multiple of the first contender's in the same turn. */
  readonly timesFloor: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
  /**
   * Share of the server's core that other processes used during the turn. The share is 0 if the system does not report
   * it.
   */
  readonly foreignLoad: number;
}

/** All turns for one server. */
export interface Turns {
  readonly subject: Subject;
  readonly turns: readonly Turn[];
}

/** The numbers of rounds and turns in a comparison. */
export interface Length {
  /**
   * Number of rounds. All servers are restarted in each round, because two processes of the same program may differ by
   * a tenth.
   */
  readonly rounds: number;
  /** Number of turns for each server in a round. */
  readonly turns: number;
}

/** Maximum share of the server's core that other processes may use in a valid turn. */
export const maxForeignLoad = 0.03;

const warmUpS = 2;
const turnS = 1;

/**
 * The requests in a turn below which the turn is repeated for `maxTurnS` seconds. Requests in progress at the end of a
 * turn cost CPU time without being counted.
 */
const minRequests = 40;
const maxTurnS = 8;

/**
 * Compares servers in turns. All servers run at the same time. In a turn, each server is loaded for a second, in
 * reverse order in every second turn.
 *
 * On a shared machine, the same work may take a third longer a minute later, but hardly within a turn. The table
 * therefore has the median ratio to the first contender in the same turn. A turn that other processes disturbed is
 * repeated. After as many repetitions as turns, a disturbed turn is used, and the table reports the disturbance.
 */
export async function compareByTurns(contenders: readonly Contender[], length: Length): Promise<readonly Turns[]> {
  const results = contenders.map(({ subject }) => ({ subject, turns: new Array<Turn>() }));
  for (let round = 0; round < length.rounds; round += 1) {
    const all = await runRound(contenders, length.turns);
    for (const [i, turns] of all.entries()) results[i]?.turns.push(...turns.map((turn) => ({ ...turn, round })));
  }
  return results;
}

interface Started extends Contender {
  readonly server: RunningServer;
  readonly rssIdleBytes: number;
}

/** A turn whose round is not set yet. */
type RoundlessTurn = Omit<Turn, "round">;

/** Runs a round, and returns each contender's turns. */
async function runRound(
  contenders: readonly Contender[],
  turns: number,
): Promise<readonly (readonly RoundlessTurn[])[]> {
  const started: Started[] = [];
  try {
    for (const contender of contenders) started.push(await start(contender));
    const completed: (readonly RoundlessTurn[])[] = [];
    for (let repeats = turns; completed.length < turns;) {
      const turn = await takeTurn(completed.length % 2 === 0 ? started : started.toReversed(), started);
      if (repeats === 0 || turn.every(({ foreignLoad }) => foreignLoad <= maxForeignLoad)) completed.push(turn);
      else repeats -= 1;
    }
    return contenders.map((_, i) => completed.flatMap((turn) => turn[i] ?? []));
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
    throw new Error(`cannot measure ${subject.name}`, { cause: reason });
  }
}

/** Loads the servers in an order, and returns their results in the order of `all`. */
async function takeTurn(order: readonly Started[], all: readonly Started[]): Promise<readonly RoundlessTurn[]> {
  const results = new Map<Started, Omit<RoundlessTurn, "timesFloor">>();
  for (const one of order) results.set(one, await measure(one));
  const first = all[0] === undefined ? undefined : results.get(all[0]);
  return all.flatMap((one) => {
    const turn = results.get(one);
    return turn === undefined ? [] : [{ ...turn, timesFloor: turn.cpuUs / (first?.cpuUs ?? Number.NaN) }];
  });
}

async function measure(one: Started, durationS = turnS): Promise<Omit<RoundlessTurn, "timesFloor">> {
  const { subject, server, load, rssIdleBytes } = one;
  const busyBefore = busyUs(serverCore);
  const startedMs = performance.now();
  const before = await server.usage();
  const result = await load(server.port, durationS);
  const after = await server.usage();
  const wallUs = (performance.now() - startedMs) * 1_000;
  const busyAfter = busyUs(serverCore);
  if (result.failures > 0)
    throw new Error(`${subject.name}: ${String(result.failures)} of ${String(result.requests)} requests failed`);
  if (result.requests < minRequests && durationS < maxTurnS) return await measure(one, maxTurnS);
  const ownUs = after.cpuUs - before.cpuUs;
  const busy = busyBefore === undefined || busyAfter === undefined ? ownUs : busyAfter - busyBefore;
  return {
    cpuUs: ownUs / result.requests,
    requestsPerS: result.requests / result.durationS,
    latencyUs: result.latencyUs,
    rssIdleBytes,
    rssLoadedBytes: after.rssBytes,
    foreignLoad: Math.max(0, busy - ownUs) / wallUs,
  };
}
