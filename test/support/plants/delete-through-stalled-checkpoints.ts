import { copyFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { Upkeep } from "../../../src/stores/contract/store-options.ts";

// Deletes plants while checkpoints of the file fail. Run as `node delete-through-stalled-checkpoints.ts FILE PLANTS
// WAIT_MS`. Waits for the store to report it, copies the file and its log to `FILE.rescued`, and waits until the store
// has recovered. Writes one JSON object with how many deletions were acknowledged, the problems, and the upkeep.

const [file = "", plants = "0", waitMs = "0"] = process.argv.slice(2);
const events: Upkeep[] = [];
const store = await openSqliteStore({ file, onUpkeep: (event) => events.push(event) });
const text = "x".repeat(1_024);
const deletePlant = (id: bigint): Promise<boolean> =>
  store.delete(id, { subject: text, requestId: text, context: { signal: new AbortController().signal } });

const until = async (isDone: () => boolean): Promise<void> => {
  for (const endMs = performance.now() + Number(waitMs); !isDone() && performance.now() < endMs;) await sleep(50);
};

const deleted = await Promise.all(Array.from({ length: Number(plants) }, (_, i) => deletePlant(BigInt(i + 1))));
await until(() => store.problem !== undefined);
const { problem } = store;
const during = { problem, needsRestart: store.needsRestart, file: store.file };
const refusal = await deletePlant(BigInt(plants) + 1n).then(String, (reason: unknown) => String(reason));
for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${file}.rescued${end}`);
await until(() => store.problem === undefined);
const after = { problem: store.problem ?? null, file: store.file };
const last = await deletePlant(BigInt(plants) + 1n).then(String, (reason: unknown) => String(reason));
await store.close();
process.stdout.write(JSON.stringify({ deleted: deleted.filter(Boolean).length, during, refusal, after, last, events }));
