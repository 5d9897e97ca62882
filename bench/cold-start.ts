import { setTimeout as delay } from "node:timers/promises";
import { buildServers } from "./build.ts";
import type { StartFigures } from "./figures.ts";
import { startServer } from "./server-process.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { summarise } from "./summary.ts";

/** How often each server is started; the first time fills the caches of files and of compiled code, and does not count. */
const starts = 11;

/** Between two starts, in ms: the processes of the last one are gone by then. */
const pauseMs = 50;

/** Measures the time from the start of the process to the first answer, the median; every program as JavaScript. */
export async function measureColdStarts({ subjects: all, probe }: Scenario): Promise<readonly StartFigures[]> {
  const built = buildServers();
  const subjects = all.filter(({ program }) => built.has(program));
  const timesMs = new Map<Subject, number[]>(subjects.map((subject) => [subject, []]));
  for (let start = 0; start < starts; start += 1) {
    for (const subject of subjects) {
      const startedMs = performance.now();
      const server = await startServer(built.programOf(subject.program), {
        ...subject.environment,
        ...built.environment,
      });
      await probe(server.port);
      if (start > 0) timesMs.get(subject)?.push(performance.now() - startedMs);
      await server.stop();
      await delay(pauseMs);
    }
  }
  const summaries = [...timesMs].map(([subject, times]) => ({ name: subject.name, ...summarise(times, Number) }));
  const floor = summaries[0]?.median ?? Number.NaN;
  return summaries.map(({ name, median: ms }) => ({ name, ms, timesFloor: ms / floor }));
}
