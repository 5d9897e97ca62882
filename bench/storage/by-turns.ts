import { median } from "../summary.ts";
import { deleteScatteredPlants } from "./load.ts";
import type { Place, StoreName } from "./stores.ts";
import { type SubjectServer, startServer } from "./subject.ts";

/** What a store showed: medians over all rounds. */
export interface TurnsSeen {
  readonly name: StoreName;
  readonly requestsPerS: number;
  /** The same as a multiple of the first store's, slice by slice of the same round. */
  readonly requestsTimes: number;
  /** CPU time of the thread that serves requests, in µs a request. */
  readonly mainUs: number;
  /** The same above the first store, slice by slice of the same round. */
  readonly mainUsAbove: number;
  readonly p50Us: number;
  /** As {@link requestsTimes}. */
  readonly p50Times: number;
}

const sliceS = 1;

/**
 * Loads servers by turns for a second each. What a store costs is a small part of what a request costs, and on a
 * machine that is shared the whole changes from one minute to the next. The first store is what the others are compared
 * with.
 */
export async function measureByTurns(
  places: readonly { readonly name: StoreName; readonly place: Place }[],
  connections: number,
  rounds: number,
): Promise<readonly TurnsSeen[]> {
  await using started = new AsyncDisposableStack();
  const subjects = [];
  for (const { name, place } of places) {
    const server = started.use(await startServer(name, place));
    subjects.push({ name, place, server, begun: 0, slices: new Array<Slice>() });
  }
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const slice = await measureSlice(subject.server, subject.place.plants, connections, subject.begun);
      // Those that the end of the load has cut off may be deleted as well.
      subject.begun += slice.requests + connections;
      if (round > 0) subject.slices.push(slice);
    }
  }
  const first = subjects[0]?.slices ?? [];
  const timesFirst = (slices: readonly Slice[], of: "requests" | "p50Us"): number =>
    median(slices.map((slice, round) => slice[of] / (first[round]?.[of] ?? Number.NaN)));
  return subjects.map(({ name, slices }) => ({
    name,
    requestsPerS: median(slices.map(({ requests }) => requests / sliceS)),
    requestsTimes: timesFirst(slices, "requests"),
    mainUs: median(slices.map(({ mainUs }) => mainUs)),
    mainUsAbove: median(slices.map(({ mainUs }, round) => mainUs - (first[round]?.mainUs ?? Number.NaN))),
    p50Us: median(slices.map(({ p50Us }) => p50Us)),
    p50Times: timesFirst(slices, "p50Us"),
  }));
}

interface Slice {
  readonly requests: number;
  readonly mainUs: number;
  readonly p50Us: number;
}

async function measureSlice(server: SubjectServer, plants: number, connections: number, begun: number): Promise<Slice> {
  const before = await server.usage();
  const load = await deleteScatteredPlants(server.port, connections, sliceS, { plants, begun });
  const after = await server.usage();
  const { requests, missed, latencyUs } = load;
  if (missed > 0) throw new Error("there were not enough plants: a plant that is not there costs more to answer");
  return { requests, mainUs: (after.mainUs - before.mainUs) / requests, p50Us: latencyUs.p50 };
}
