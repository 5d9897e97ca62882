import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { StallFigures } from "./figures.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";
import { median } from "./summary.ts";
import { longListBooks } from "../packages/testing/src/gateway/books.ts";

/** How often each server answers with that list, after as many times that do not count. */
const lists = 5;

/** Between two small requests on the other connection, in ms. */
const everyMs = 1;

/** Small requests are sent for so long before a list is asked for, and after it has come, in ms. */
const marginMs = 50;

/**
 * Measures how long a list of 10 MB keeps others waiting: the slowest small request on another connection while the
 * list is made and sent, the median over the lists.
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
  for (let list = 0; list < 2 * lists; list += 1) longest.push(await slowestBeside(server.port));
  return median(longest.slice(lists));
}

/** Returns the longest time that a small request took while a list came, in ms. */
async function slowestBeside(port: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let slowestMs = 0;
  const over = new AbortController();
  const small = (async () => {
    while (!over.signal.aborted) {
      const startedMs = performance.now();
      await read(port, "/v1/books/0", agent);
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await delay(everyMs);
    }
  })();
  await delay(marginMs);
  // What the connection and its first answer take does not count.
  slowestMs = 0;
  const bytes = await read(port, `/v1/books?pageSize=${String(longListBooks)}`, new Agent());
  if (bytes < 8_000_000) throw new Error(`the list has ${String(bytes)} bytes`);
  await delay(marginMs);
  over.abort();
  await small;
  agent.destroy();
  return slowestMs;
}

/** Reads an answer, and returns how long it is. */
function read(port: number, path: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path, agent }, (answer) => {
      let bytes = 0;
      answer.on("data", (piece: Buffer) => (bytes += piece.byteLength));
      answer.on("end", () => resolve(bytes)).on("error", reject);
    });
    request.on("error", reject);
  });
}
