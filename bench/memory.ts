import type { MemoryFigures } from "./figures.ts";
import { startServer } from "./server-process.ts";
import type { Scenario } from "./scenarios.ts";

/** Calls between two looks at the memory. */
const callsPerLook = 1_000_000;

/** Looks after the first, which is at a server that has just started. */
const looks = 2;

/** Seconds of load between two counts of the calls. */
const stepS = 5;

/**
 * Measures resident memory after a garbage collection: at the start, after a million calls, after two million.
 *
 * @param names - the servers to look at
 */
export async function measureMemory(
  { subjects, load }: Scenario,
  names: readonly string[],
): Promise<readonly MemoryFigures[]> {
  const seen: MemoryFigures[] = [];
  for (const { name, program, environment } of subjects.filter((subject) => names.includes(subject.name))) {
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
