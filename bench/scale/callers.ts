import { once } from "node:events";
import { openPlantStore } from "../../src/stores/index.ts";
import { scattered } from "../storage/scattered.ts";

// A store on PostgreSQL without a server, and callers that each delete one plant after the other. The callers delete
// for a second to warm up. After a message from the parent, the callers delete for the measurement.

/** This program's options, which are passed as an argument in JSON. */
export interface CallersOptions {
  readonly url: string;
  readonly callers: number;
  readonly seconds: number;
  readonly plants: number;
  /**
   * The part of the scattered order that this program deletes, from the index `first` to the index `end`, exclusive.
   */
  readonly range: { readonly first: number; readonly end: number };
}

/** A message to the parent, which reports that the callers are warm, or the measurement's result. */
export type CallersMessage =
  | { readonly kind: "warm" }
  | { readonly kind: "done"; readonly deletions: number; readonly batches: number; readonly cpuUs: number };

const warmUpMs = 1_000;

const options: CallersOptions = JSON.parse(process.argv[2] ?? "");
let [deletions, batches, started] = [0, 0, 0];
const store = await openPlantStore(
  { kind: "postgres", url: options.url },
  {
    onBatch: () => {
      batches++;
      return () => undefined;
    },
  },
);
const ids = scattered(options.plants, options.range.first);
const context = { signal: new AbortController().signal };
// The prefix gives request ids the same length as a server's request ids.
const requestIdPrefix = `${"0".repeat(16)}-`;

await deleteFor(warmUpMs);
sendToParent({ kind: "warm" });
await once(process, "message");
[deletions, batches] = [0, 0];
const cpu = process.cpuUsage();
await deleteFor(options.seconds * 1_000);
const { user, system } = process.cpuUsage(cpu);
sendToParent({ kind: "done", deletions, batches, cpuUs: user + system });
// The store is closed when the parent disconnects.
await store.close();

async function deleteFor(ms: number): Promise<void> {
  const endMs = performance.now() + ms;
  await Promise.all(Array.from({ length: options.callers }, () => deleteUntil(endMs)));
}

async function deleteUntil(endMs: number): Promise<void> {
  while (performance.now() < endMs && options.range.first + started < options.range.end) {
    started++;
    const { value: id } = ids.next();
    if (id === undefined) return;
    const call = { subject: "clean-up", requestId: requestIdPrefix + started.toString(36), context };
    if (!(await store.delete(id, call))) throw new Error(`plant ${id} does not exist`);
    deletions++;
  }
}

function sendToParent(message: CallersMessage): void {
  process.send?.(message);
}
