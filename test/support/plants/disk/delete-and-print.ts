/**
 * A process that deletes plants from an SQLite file one after the other, optionally with separate keys, prints each
 * outcome as a JSON line, and is killed. If the file does not exist, it is created with a thousand plants.
 */
import { ConnectError } from "@connectrpc/connect";
import { writeSync } from "node:fs";
import { openSqliteStore } from "../../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "../delete-call.ts";

const [file = "", first = "", last = first, keys = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 1_000n } });
for (let id = BigInt(first); id <= BigInt(last); id++) {
  // Long enough for each deletion to need a separate page.
  const text = "x".repeat(1_000);
  const idempotencyKey = keys === "with keys" ? `key-${id}` : undefined;
  const outcome = await store
    .delete(id, deleteCall({ subject: text, requestId: text, idempotencyKey }))
    .catch((reason: unknown) => ConnectError.from(reason).rawMessage);
  writeSync(1, `${JSON.stringify(outcome)}\n`);
}
process.kill(process.pid, "SIGKILL");
