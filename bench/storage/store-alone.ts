import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { percentilesOf } from "../../protoport/bench/load/load.ts";
import { scattered } from "./scattered.ts";
import { isStoreName, type StoreLocation, stores } from "./stores.ts";

// A store without a server, with as many callers as the load. Each caller deletes one plant after the other, with an
// optional pause in ms. The program prints the deletions, their rate and latency, and the process's CPU time in µs.

const [name = "", location = "{}", callers = "256", seconds = "5", pauseMs = "0"] = process.argv.slice(2);
if (!isStoreName(name)) throw new Error(`unknown store "${name}"`);
const where: StoreLocation = JSON.parse(location);
const store = await stores[name](where);
const ids = scattered(where.plants);
const context = { signal: new AbortController().signal };

const startedMs = performance.now();
const startedCpu = process.cpuUsage();
const endMs = startedMs + Number(seconds) * 1_000;
let deleted = 0;
const latencies: number[] = [];
await Promise.all(Array.from({ length: Number(callers) }, callOneAfterAnother));
const { user, system } = process.cpuUsage(startedCpu);
const perS = (deleted / (performance.now() - startedMs)) * 1_000;
process.stdout.write(
  JSON.stringify({ deleted, perS, latencyUs: percentilesOf(Float64Array.from(latencies)), cpuUs: user + system }),
);
await store.close();

async function callOneAfterAnother(): Promise<void> {
  for (let requestId = 0; performance.now() < endMs; requestId++) {
    const { value: id, done } = ids.next();
    if (done === true) return;
    const idempotencyKey = where.hasKeys === true ? randomUUID() : undefined;
    const beganMs = performance.now();
    if (await store.delete(id, { subject: "bench", requestId: String(requestId), context, idempotencyKey })) deleted++;
    latencies.push((performance.now() - beganMs) * 1_000);
    if (pauseMs !== "0") await sleep(Number(pauseMs));
  }
}
