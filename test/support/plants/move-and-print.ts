/** Moves the store at the first argument to the second, without the wait for servers, and prints the counts. */
import { movePlants } from "../../../src/stores/records/move-plants.ts";
import { openLockedStore, type PlantLocation } from "../../../src/stores/index.ts";

const [source, target] = process.argv.slice(2).map((text): PlantLocation => JSON.parse(text));
if (source === undefined || target === undefined) throw new Error("usage: move-and-print.ts SOURCE TARGET");
await using reading = await openLockedStore(source, { isReadOnly: true, watchMs: 0 });
await using writing = await openLockedStore(target, { isReadOnly: false, refused: reading.identity, watchMs: 0 });
console.log(JSON.stringify(await movePlants(reading, writing)));
