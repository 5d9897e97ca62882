/**
 * A process that deletes plants 1, 2, 3 … from an SQLite file, several at a time, and prints the id of
 * each as soon as it was told that it is deleted. It never ends by itself.
 */
import { openSqliteStore } from "../../src/plants/sqlite/store.ts";
import { deleteCall } from "./delete-call.ts";

const [file = "", plants = "0"] = process.argv.slice(2);
const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: BigInt(plants) } });

let next = 1n;
const deleteOneAfterAnother = async (): Promise<never> => {
  for (;;) {
    const id = next++;
    if (await store.delete(id, deleteCall())) process.stdout.write(`${id}\n`);
  }
};
await Promise.all(Array.from({ length: 8 }, deleteOneAfterAnother));
