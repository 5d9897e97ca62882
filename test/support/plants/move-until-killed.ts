/** Moves a store, prints the stores' operations, and kills itself around operation N, or never if N is 0. */
import { Worker } from "node:worker_threads";
import type { MovableStore } from "../../../src/stores/contract/movable-store.ts";
import { movePlants, openMovableStore, type PlantLocation } from "../../../src/stores/index.ts";

const [from = "", to = "", at = "", when = ""] = process.argv.slice(2);
const memory = new Int32Array(new SharedArrayBuffer(4));
// A separate thread kills the process during an operation, because SQLite blocks this thread.
const killer = `const { workerData: memory } = require("node:worker_threads");
  Atomics.wait(memory, 0, 0);
  for (const endMs = performance.now() + Math.random(); performance.now() < endMs;);
  process.kill(process.pid, "SIGKILL");`;
const operations: string[] = [];

async function around<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const isHere = operations.push(name) === Number(at);
  if (isHere && when === "before") process.kill(process.pid, "SIGKILL");
  if (isHere && when === "during") {
    Atomics.store(memory, 0, 1);
    Atomics.notify(memory, 0);
    for (const endMs = performance.now() + 1.5 * Math.random(); performance.now() < endMs;);
  }
  const result = await run();
  if (isHere) process.kill(process.pid, "SIGKILL");
  return result;
}

async function open(text: string, role: "source" | "target"): Promise<MovableStore> {
  const location: PlantLocation = JSON.parse(text);
  const store = await openMovableStore(location, role);
  return {
    ...store,
    begin: (isSnapshot) => around("begin", () => store.begin(isSnapshot)),
    commit: () => around("commit", () => store.commit()),
    run: (sql, value) => around("run", () => store.run(sql, value)),
    get: (sql) => around("get", () => store.get(sql)),
    insertPlants: (ids) => around("insertPlants", () => store.insertPlants(ids)),
    insertRecords: (records) => around("insertRecords", () => store.insertRecords(records)),
  };
}

if (when === "during") {
  const thread = new Worker(killer, { eval: true, workerData: memory });
  await new Promise((resolve) => thread.once("online", resolve));
  thread.unref();
}
{
  await using source = await open(from, "source");
  await using target = await open(to, "target");
  await movePlants(source, target);
}
console.log(JSON.stringify(operations));
