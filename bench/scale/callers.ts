import { once } from "node:events";
import { openPlantStore } from "../../src/stores/index.ts";
import { scattered } from "../storage/scattered.ts";

// A store on PostgreSQL without a server, and callers that each delete one plant after the other: for a second to get
// warm, and when its parent tells it to, for as long as that counts.

/** What this program is told, as one argument of JSON. */
export interface CallersOrder {
  readonly url: string;
  readonly callers: number;
  readonly seconds: number;
  readonly plants: number;
  /** The places in the scattered order of the plants that are its own, from the first to before the end. */
  readonly places: { readonly first: number; readonly end: number };
}

/** What this program tells its parent: that it is warm, and what it has done since it was told to go on. */
export type CallersSaid =
  | { readonly kind: "warm" }
  | { readonly kind: "done"; readonly deletions: number; readonly batches: number; readonly cpuUs: number };

const warmUpMs = 1_000;

const order: CallersOrder = JSON.parse(process.argv[2] ?? "");
let [deletions, batches, asked] = [0, 0, 0];
const store = await openPlantStore(
  { kind: "postgres", url: order.url },
  {
    onBatch: () => {
      batches++;
      return () => undefined;
    },
  },
);
const ids = scattered(order.plants, order.places.first);
const context = { signal: new AbortController().signal };
// As long as the ids of a server.
const requestIdPrefix = `${"0".repeat(16)}-`;

await deleteFor(warmUpMs);
say({ kind: "warm" });
await once(process, "message");
[deletions, batches] = [0, 0];
const cpu = process.cpuUsage();
await deleteFor(order.seconds * 1_000);
const { user, system } = process.cpuUsage(cpu);
say({ kind: "done", deletions, batches, cpuUs: user + system });
// Its parent disconnects.
await store.close();

async function deleteFor(ms: number): Promise<void> {
  const endMs = performance.now() + ms;
  await Promise.all(Array.from({ length: order.callers }, () => deleteUntil(endMs)));
}

async function deleteUntil(endMs: number): Promise<void> {
  while (performance.now() < endMs && order.places.first + asked < order.places.end) {
    asked++;
    const { value: id } = ids.next();
    if (id === undefined) return;
    const call = { subject: "clean-up", requestId: requestIdPrefix + asked.toString(36), context };
    if (!(await store.delete(id, call))) throw new Error(`plant ${id} was not there`);
    deletions++;
  }
}

function say(said: CallersSaid): void {
  process.send?.(said);
}
