import { startPostgres } from "../../test/support/plants/postgres-server.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import type { DeletionFigures } from "../figures.ts";
import { deleteScatteredPlants, type RestResult } from "./load.ts";
import { createStore, type StoreName } from "./stores.ts";
import { startServer } from "./subject.ts";

/** The compared stores, each followed by the same store with a statement per request. */
const stores: readonly (readonly [store: StoreName, name: string])[] = [
  ["sqlite", "SQLite"],
  ["sqlite single", "SQLite, one by one"],
  ["postgres", "PostgreSQL"],
  ["postgres single", "PostgreSQL, one by one"],
];

/** The numbers of callers: a lone caller, and enough callers for medium and large batches. */
const numbersOfCallers = [1, 32, 256];

/** Number of processes of each server, because two processes of the same program differ. */
const processes = 3;

/** Number of plants, which is more than a process deletes. */
const plants = 1_000_000;

const warmUpS = 1;
const loadS = 2;

/** Measures durable deletions over REST on each store, on databases with fsync on the disk. The function requires wrk. */
export async function measureDeletions(): Promise<readonly DeletionFigures[]> {
  using folder = createTempFolder();
  await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], {
    onDisk: true,
  });
  const results = stores.map(([store, name]) => ({
    store,
    name,
    loads: numbersOfCallers.map((callers) => ({ callers, results: new Array<RestResult>() })),
  }));
  for (let process = 0; process < processes; process += 1) {
    for (const { store, name, loads } of results) {
      const location = await createStore(store, plants, folder.file(`${store} ${process}.db`), postgres);
      await using server = await startServer(store, location);
      let begun = 0;
      const load = async (callers: number, seconds: number): Promise<RestResult> => {
        const result = await deleteScatteredPlants(server.port, callers, seconds, { plants, begun });
        if (result.missed > 0) throw new Error(`${name}: too few plants`);
        // Requests that were interrupted when the load ended may have deleted their plants as well.
        begun += result.requests + callers;
        return result;
      };
      await load(32, warmUpS);
      for (const each of loads) each.results.push(await load(each.callers, loadS));
    }
  }
  return results.map(({ name, loads }) => ({
    name,
    loads: loads.map(({ callers, results: all }) => ({
      callers,
      deletionsPerS: rangeOf(all.map(({ requestsPerS }) => requestsPerS)),
      p99Us: rangeOf(all.map(({ latencyUs }) => latencyUs.p99)),
    })),
  }));
}

function rangeOf(figures: readonly number[]): readonly [number, number] {
  return [Math.min(...figures), Math.max(...figures)];
}
