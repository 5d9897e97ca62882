import { busyUs, serverCore } from "./cores.ts";
import type { RateFigures, RateStep } from "./figures.ts";
import { openLoad, type OpenLoadResult } from "./load/open-load.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario } from "./scenarios.ts";
import { startServer } from "./server-process.ts";
import { median } from "./summary.ts";

/** The offered rates in requests per second. The rates are tried in this order until a server does not keep up. */
const rates = [5_000, 10_000, 20_000, 40_000];

const warmUpS = 2;

/** Number of one-second turns for each server at a rate, and of those that other processes disturbed least. */
const turns = 5;
const quietTurns = 3;
const turnS = 1;

/** Minimum share of the offered requests to which a server must respond to keep up. */
const keptUp = 0.95;

/** Maximum share of failed requests. One in a thousand fails by design. */
const maxFailures = 1 / 500;

interface Measured extends RateFigures {
  readonly server: RunningServer;
  readonly steps: RateStep[];
}

interface RateTurn extends OpenLoadResult {
  /** Share of the turn for which other processes used the server's core or delayed the client. */
  readonly disturbance: number;
}

/**
 * Measures a scenario's servers over HTTP/1.1 at increasing rates. In a turn, the servers are loaded one after the
 * other. Latencies are medians over the turns that other processes disturbed least.
 */
export async function measureRates({ subjects, shape, load }: Scenario): Promise<readonly RateFigures[]> {
  await using stack = new AsyncDisposableStack();
  const all: Measured[] = [];
  for (const { name, program, environment } of subjects) {
    const server = await startServer(program, environment);
    stack.defer(() => server.stop());
    await load(server.port, warmUpS);
    all.push({ name, server, steps: [] });
  }
  let keepingUp: readonly Measured[] = all;
  for (const rate of rates) {
    const turnsOf = await takeTurns(keepingUp, openLoad(shape, rate));
    keepingUp = keepingUp.filter((one) => {
      const taken = (turnsOf.get(one) ?? []).toSorted((a, b) => a.disturbance - b.disturbance).slice(0, quietTurns);
      const middle = (figure: (turn: RateTurn) => number): number => median(taken.map(figure));
      if (middle(({ requests, durationS }) => requests / durationS) < rate * keptUp) return false;
      const latencyUs = { p50: middle((turn) => turn.latencyUs.p50), p99: middle((turn) => turn.latencyUs.p99) };
      one.steps.push({ requestsPerS: rate, latencyUs });
      return true;
    });
  }
  return all.map(({ name, steps }) => ({ name, steps }));
}

/** Loads the servers one after the other, in reverse order in every second turn. */
async function takeTurns(
  servers: readonly Measured[],
  load: ReturnType<typeof openLoad>,
): Promise<Map<Measured, RateTurn[]>> {
  const turnsOf = new Map(servers.map((one) => [one, new Array<RateTurn>()]));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const one of turn % 2 === 0 ? servers : servers.toReversed()) {
      turnsOf.get(one)?.push(await takeTurn(one, load));
    }
  }
  return turnsOf;
}

async function takeTurn({ name, server }: Measured, load: ReturnType<typeof openLoad>): Promise<RateTurn> {
  const startedMs = performance.now();
  const [busyBeforeUs = 0, before] = [busyUs(serverCore), await server.usage()];
  const result = await load(server.port, turnS);
  const [busyAfterUs = 0, after] = [busyUs(serverCore), await server.usage()];
  const wallUs = (performance.now() - startedMs) * 1_000;
  const { requests, failures, stalledShare } = result;
  if (failures > requests * maxFailures) throw new Error(`${name}: ${failures} of ${requests} requests failed`);
  const foreignUs = busyAfterUs - busyBeforeUs - (after.cpuUs - before.cpuUs);
  return { ...result, disturbance: Math.max(stalledShare, foreignUs / wallUs) };
}
