/**
 * A process that deletes plants 1 to n from an SQLite file one after the other, and prints the outcomes. Also prints
 * the store's problem right after the first refusal, and again once the store has recovered or the time limit has
 * passed.
 */
import { ConnectError } from "@connectrpc/connect";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "./delete-call.ts";

const [file = "", plants = "0", limitMs = "0"] = process.argv.slice(2);
const store = await openSqliteStore({ file });
const outcomes: (boolean | string)[] = [];
const problems: (string | undefined)[] = [];
for (let id = 1n; id <= BigInt(plants); id++) {
  const outcome = await store.delete(id, deleteCall()).catch((reason: unknown) => ConnectError.from(reason).rawMessage);
  outcomes.push(outcome);
  if (typeof outcome === "boolean" || problems.length > 0) continue;
  problems.push(store.problem);
  for (let waitedMs = 0; waitedMs < Number(limitMs) && store.problem !== undefined; waitedMs += 100) await sleep(100);
  problems.push(store.problem);
}
await store.close();
process.stdout.write(JSON.stringify({ outcomes, problems: problems.map((problem) => problem ?? null) }));
