import { ownName, type MemoryFigures } from "./figures.ts";
import { startServer } from "./server-process.ts";
import { type Scenario, type Subject } from "./scenarios.ts";

/** Calls between two looks at the memory. */
const callsPerLook = 1_000_000;

/** Looks after the first, which is at a server that has just started. */
const looks = 2;

/** Seconds of load between two counts of the calls. */
const stepS = 5;

/**
 * Measures resident memory after a garbage collection: at the start, after a million calls, after two million. Of the
 * floor and ours: two million calls of the slowest peer would take a quarter of an hour.
 */
export async function measureMemory({ subjects, load }: Scenario): Promise<readonly MemoryFigures[]> {
  const seen: MemoryFigures[] = [];
  for (const { name, program, environment } of subjects.filter(isMeasured)) {
    const server = await startServer(program, environment);
    const rssBytes = [(await server.settle()).rssBytes];
    for (let look = 0; look < looks; look += 1) {
      for (let calls = 0; calls < callsPerLook;) calls += (await load(server.port, stepS)).requests;
      rssBytes.push((await server.settle()).rssBytes);
    }
    seen.push({ name, rssBytes });
    await server.stop();
  }
  return seen;
}

function isMeasured({ name }: Subject, at: number): boolean {
  return at === 0 || name === ownName;
}
