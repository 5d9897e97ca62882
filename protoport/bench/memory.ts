import type { MemoryFigures } from "./figures.ts";
import { startServer } from "./server-process.ts";
import type { Scenario } from "./scenarios.ts";

/** Number of calls between two memory samples. */
const callsPerSample = 1_000_000;

/** Number of memory samples after the first sample, which is taken when the server has started. */
const samples = 2;

/** Seconds under load between two call counts. */
const stepS = 5;

/**
 * Measures resident memory after a garbage collection, at the start, after one million calls and after two million
 * calls. Only the floor and the server with a name are measured, because two million calls take the slowest peer a
 * quarter of an hour.
 */
export async function measureMemory({ subjects, load }: Scenario, ownName: string): Promise<readonly MemoryFigures[]> {
  const figures: MemoryFigures[] = [];
  for (const { name, program, environment } of subjects.filter((subject, at) => at === 0 || subject.name === ownName)) {
    const server = await startServer(program, environment);
    const rssBytes = [(await server.settle()).rssBytes];
    for (let sample = 0; sample < samples; sample += 1) {
      for (let calls = 0; calls < callsPerSample;) calls += (await load(server.port, stepS)).requests;
      rssBytes.push((await server.settle()).rssBytes);
    }
    figures.push({ name, rssBytes });
    await server.stop();
  }
  return figures;
}
