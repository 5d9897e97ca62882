/** Deletes all plants of a file in batches, and prints the outcomes. The shell limits the size of its files. */
import { ConnectError } from "@connectrpc/connect";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "./delete-call.ts";

const [file = "", plants = "0"] = process.argv.slice(2);
const store = await openSqliteStore({ file });
const call = deleteCall({ subject: "s".repeat(500) });
const results = await Promise.all(
  Array.from({ length: Number(plants) }, (_, i) =>
    store.delete(BigInt(i + 1), call).catch((reason: unknown) => ConnectError.from(reason).message),
  ),
);
process.stdout.write(JSON.stringify({ results, problem: store.problem }));
await store.close();
