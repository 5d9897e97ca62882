/** Deletes plants 1 to n with the keys `key-<id>`, prints each deleted plant's id, and waits to be killed. */
import { writeSync } from "node:fs";
import { openPlantStore, type PlantLocation } from "../../../src/stores/index.ts";
import { deleteCall } from "./delete-call.ts";

const [location = "", plants = "0"] = process.argv.slice(2);
const parsed: PlantLocation = JSON.parse(location);
const store = await openPlantStore(parsed);
let next = 1n;

async function deleteOneByOne(): Promise<void> {
  while (next <= BigInt(plants)) {
    const id = next++;
    if (await store.delete(id, deleteCall({ idempotencyKey: `key-${id}` }))) writeSync(1, `${id}\n`);
  }
}

await Promise.all(Array.from({ length: 16 }, deleteOneByOne));
