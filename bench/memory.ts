import { startServer } from "./server-process.ts";
import type { Scenario } from "./scenarios.ts";
import { formatRows, megabytes } from "./table.ts";

/** Calls between two looks at the memory. */
const callsPerLook = 1_000_000;

/** Looks after the first, which is at a server that has just started. */
const looks = 2;

/** Seconds of load between two counts of the calls. */
const stepS = 5;

/** Resident memory after a garbage collection: at the start, after a million calls, after two million. */
export async function measureMemory({ subjects, load }: Scenario): Promise<string> {
  const rows: string[][] = [];
  for (const { name, program, environment } of subjects) {
    const server = await startServer(program, environment);
    const row = [name, megabytes((await server.settle()).rssBytes)];
    for (let look = 0; look < looks; look += 1) {
      for (let calls = 0; calls < callsPerLook;) calls += (await load(server.port, stepS)).requests;
      row.push(megabytes((await server.settle()).rssBytes));
    }
    rows.push(row);
    await server.stop();
  }
  return formatRows(["server", "RSS MB at the start", "after 1 M calls", "after 2 M calls"], rows);
}
