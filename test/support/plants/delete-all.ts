/** A process that deletes plants 1 to n from a PostgreSQL database concurrently, and prints those that it deleted. */
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { deleteRetrying } from "./delete-call.ts";

const [url = "", plants = "0", seed = "0"] = process.argv.slice(2);
const store = await openPostgresStore({ url });
// Each process uses a different order, so that their batches overlap in many ways.
const ids = Array.from({ length: Number(plants) }, (_, i) => BigInt(((i * 7_919 + Number(seed)) % Number(plants)) + 1));
const outcomes = await Promise.all(ids.map((id) => deleteRetrying(store, id)));
await store.close();
process.stdout.write(JSON.stringify(ids.filter((_, i) => outcomes[i]).map(String)));
