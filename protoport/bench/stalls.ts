import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { StallFigures } from "./figures.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";
import { median } from "./summary.ts";
import { longListBooks } from "../testing/src/gateway/books.ts";

/** Number of measured lists that each server sends. As many lists are sent before the measurement. */
const lists = 5;

/** Pause between two small requests on the other connection, in ms. */
const intervalMs = 1;

/** Milliseconds for which small requests are sent before a list is requested, and after the list has arrived. */
const marginMs = 50;

/**
 * Measures how long a 10 MB list delays other requests. Reports the slowest small request on another connection while
 * the list is encoded and sent, as the median over the lists.
 */
export async function measureStalls({ subjects }: Scenario): Promise<readonly StallFigures[]> {
  const figures: StallFigures[] = [];
  for (const subject of subjects) figures.push({ name: subject.name, ms: await stallOf(subject) });
  return figures;
}

async function stallOf({ program, environment }: Subject): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const server = await startServer(program, environment);
  stack.defer(() => server.stop());
  const longest: number[] = [];
  for (let list = 0; list < 2 * lists; list += 1) longest.push(await slowestDuringList(server.port));
  return median(longest.slice(lists));
}

/** Returns how long the slowest small request takes while a list is sent, in ms. */
async function slowestDuringList(port: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let slowestMs = 0;
  const listRead = new AbortController();
  const small = (async () => {
    while (!listRead.signal.aborted) {
      const startedMs = performance.now();
      await read(port, "/v1/books/0", agent);
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await delay(intervalMs);
    }
  })();
  await delay(marginMs);
  // The time for opening the connection and for the first response is not measured.
  slowestMs = 0;
  const bytes = await read(port, `/v1/books?pageSize=${String(longListBooks)}`, new Agent());
  if (bytes < 8_000_000) throw new Error(`the list has only ${String(bytes)} bytes`);
  await delay(marginMs);
  listRead.abort();
  await small;
  agent.destroy();
  return slowestMs;
}

/** Reads a response, and returns its body's size in bytes. */
function read(port: number, path: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path, agent }, (response) => {
      let bytes = 0;
      response.on("data", (piece: Buffer) => (bytes += piece.byteLength));
      response.on("end", () => resolve(bytes)).on("error", reject);
    });
    request.on("error", reject);
  });
}
