import { median } from "../../protoport/bench/summary.ts";
import { deleteScatteredPlants } from "./load.ts";
import type { StoreLocation, StoreName } from "./stores.ts";
import { type SubjectServer, startServer } from "./subject.ts";

/** A store's results, as medians over all rounds. */
export interface TurnResults {
  readonly name: StoreName;
  readonly requestsPerS: number;
  /** The requests per second as a multiple of the first store's in the same round. */
  readonly requestsTimes: number;
  /** CPU time in the thread that serves requests, in µs per request. */
  readonly mainUs: number;
  /** The difference to the first store's CPU time in the same round, in µs. */
  readonly mainUsAbove: number;
  readonly p50Us: number;
  /** The median latency as a multiple of the first store's in the same round. */
  readonly p50Times: number;
}

const sliceS = 1;

/**
 * Loads servers in one-second turns. A store's cost is a small part of a request's cost, which changes from one minute
 * to the next on a shared machine. All other stores are compared with the first store.
 */
export async function measureByTurns(
  locations: readonly { readonly name: StoreName; readonly location: StoreLocation }[],
  connections: number,
  rounds: number,
): Promise<readonly TurnResults[]> {
  await using started = new AsyncDisposableStack();
  const subjects = [];
  for (const { name, location } of locations) {
    const server = started.use(await startServer(name, location));
    subjects.push({ name, location, server, begun: 0, slices: new Array<Slice>() });
  }
  // The first round is a warm-up.
  for (let round = 0; round <= rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const slice = await measureSlice(subject.server, subject.location.plants, connections, subject.begun);
      // Requests that were interrupted when the load ended may have deleted their plants as well.
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
  if (missed > 0) throw new Error("too few plants: requests for missing plants cost more");
  return { requests, mainUs: (after.mainUs - before.mainUs) / requests, p50Us: latencyUs.p50 };
}
