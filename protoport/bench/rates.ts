import type { RateFigures, RateStep } from "./figures.ts";
import { pacedLoad } from "./load/h2load.ts";
import type { Load, LoadResult } from "./load/load.ts";
import type { Scenario } from "./scenarios.ts";
import { startServer } from "./server-process.ts";
import { median } from "./summary.ts";

/** The offered rates in requests per second. The rates are tried in this order until a server does not keep up. */
const rates = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];

const warmUpS = 2;

/**
 * Number of one-second turns for each server at a rate. h2load sends on all connections at the same time. At the lowest
 * rate, each of 78 bursts is more than a hundredth of the requests. A single disturbance therefore determines a turn's
 * p99.
 */
const turns = 7;
const turnS = 1;

/** Minimum share of the offered requests to which a server must respond to keep up. */
const keptUp = 0.95;

interface Measured extends RateFigures {
  readonly port: number;
  readonly steps: RateStep[];
}

/**
 * Measures some of a scenario's servers at increasing rates. Latencies are medians over turns. In a turn, the servers
 * are loaded one after the other. The function requires h2load.
 */
export async function measureRates(
  { subjects, shape, load }: Scenario,
  names: readonly string[],
): Promise<readonly RateFigures[]> {
  await using stack = new AsyncDisposableStack();
  const all: Measured[] = [];
  for (const { name, program, environment } of subjects.filter((subject) => names.includes(subject.name))) {
    const server = await startServer(program, environment);
    stack.defer(() => server.stop());
    await load(server.port, warmUpS);
    all.push({ name, port: server.port, steps: [] });
  }
  let keepingUp: readonly Measured[] = all;
  for (const rate of rates) {
    const resultsOf = await takeTurns(keepingUp, pacedLoad(shape, rate));
    keepingUp = keepingUp.filter((one) => {
      const results = resultsOf.get(one) ?? [];
      const middle = (figure: (result: LoadResult) => number): number => median(results.map(figure));
      if (middle(({ requests, durationS }) => requests / durationS) < rate * keptUp) return false;
      one.steps.push(stepOf(rate, results));
      return true;
    });
  }
  return all.map(({ name, steps }) => ({ name, steps }));
}

function stepOf(requestsPerS: number, results: readonly LoadResult[]): RateStep {
  const middle = (figure: (result: LoadResult) => number): number => median(results.map(figure));
  const p50 = middle(({ latencyUs }) => latencyUs.p50);
  return { requestsPerS, latencyUs: { p50, p99: middle(({ latencyUs }) => latencyUs.p99) } };
}

/** Loads the servers one after the other, in reverse order in every second turn. */
async function takeTurns(servers: readonly Measured[], load: Load): Promise<Map<Measured, LoadResult[]>> {
  const resultsOf = new Map(servers.map((one) => [one, new Array<LoadResult>()]));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const one of turn % 2 === 0 ? servers : servers.toReversed()) {
      const result = await load(one.port, turnS);
      const { requests, failures } = result;
      if (failures > requests / 500) throw new Error(`${one.name}: ${failures} of ${requests} requests failed`);
      resultsOf.get(one)?.push(result);
    }
  }
  return resultsOf;
}
