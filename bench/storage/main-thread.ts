import { deleteScatteredPlants } from "./load.ts";
import type { Place, StoreName } from "./stores.ts";
import { type SubjectServer, startServer } from "./subject.ts";

/** What deleting costs the thread that serves requests, in µs of CPU a request: medians over all rounds. */
export interface MainThreadCost {
  readonly name: StoreName;
  readonly mainUs: number;
  /** Above the first of all stores, slice by slice of the same round. */
  readonly moreUs: number;
  readonly requestsPerS: number;
}

const connections = 256;
const sliceS = 1;

/**
 * Loads servers by turns for a second each, with 256 connections. A store's cost is a small part of what a request
 * costs, and on a machine that is shared the whole changes from one minute to the next. The first store is what the
 * others are compared with.
 */
export async function measureMainThread(
  places: readonly { readonly name: StoreName; readonly place: Place }[],
  rounds: number,
): Promise<readonly MainThreadCost[]> {
  await using started = new AsyncDisposableStack();
  const subjects = [];
  for (const { name, place } of places) {
    const server = started.use(await startServer(name, place));
    subjects.push({ name, place, server, begun: 0, slices: new Array<Slice>() });
  }
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const slice = await measureSlice(subject.server, subject.place.plants, subject.begun);
      // Those that the end of the load has cut off may be deleted as well.
      subject.begun += slice.requests + connections;
      if (round > 0) subject.slices.push(slice);
    }
  }
  const first = subjects[0]?.slices ?? [];
  return subjects.map(({ name, slices }) => ({
    name,
    mainUs: median(slices.map(({ mainUs }) => mainUs)),
    moreUs: median(slices.map(({ mainUs }, round) => mainUs - (first[round]?.mainUs ?? 0))),
    requestsPerS: median(slices.map(({ requests }) => requests / sliceS)),
  }));
}

interface Slice {
  readonly requests: number;
  readonly mainUs: number;
}

async function measureSlice(server: SubjectServer, plants: number, begun: number): Promise<Slice> {
  const before = await server.usage();
  const { requests, missed } = await deleteScatteredPlants(server.port, connections, sliceS, plants, begun);
  const after = await server.usage();
  if (missed > 0) throw new Error("there were not enough plants: a plant that is not there costs more to answer");
  return { requests, mainUs: (after.mainUs - before.mainUs) / requests };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;
}
