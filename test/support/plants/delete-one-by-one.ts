/** A process that deletes plants 1 to n from a new SQLite file, each after the other was acknowledged. */
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "./delete-call.ts";

const [file = "", plants = "0"] = process.argv.slice(2);
const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 1_000n } });
for (let id = 1n; id <= BigInt(plants); id++) await store.delete(id, deleteCall());
await store.close();
