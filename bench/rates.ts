import type { RateFigures } from "./figures.ts";
import { pacedLoad } from "./load/h2load.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";

/** Requests a second that are offered, one rate after the other, until a server does not keep up. */
const rates = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];

const warmUpS = 2;
const stepS = 1;

/** A server that answers fewer than this share of the requests that are due does not keep up. */
const keptUp = 0.95;

/** Measures the latency of some servers of a scenario at one rate after the other. Needs h2load. */
export async function measureRates(
  { subjects, shape, load }: Scenario,
  names: readonly string[],
): Promise<readonly RateFigures[]> {
  const seen: RateFigures[] = [];
  for (const subject of subjects.filter(({ name }) => names.includes(name))) {
    const server = await startServer(subject.program, subject.environment);
    try {
      await load(server.port, warmUpS);
      seen.push({ name: subject.name, steps: await measureSteps(subject, server.port, shape) });
    } finally {
      await server.stop();
    }
  }
  return seen;
}

async function measureSteps(subject: Subject, port: number, shape: Scenario["shape"]): Promise<RateFigures["steps"]> {
  const steps = [];
  for (const rate of rates) {
    const { requests, failures, durationS, latencyUs } = await pacedLoad(shape, rate)(port, stepS);
    if (failures > requests / 500) throw new Error(`${subject.name}: ${failures} of ${requests} requests failed`);
    if (requests / durationS < rate * keptUp) return steps;
    steps.push({ requestsPerS: rate, latencyUs });
  }
  return steps;
}
