import type { MemoryFigures } from "./figures.ts";
import { type Http1Connection, openHttp1Connection } from "./load/http1-connection.ts";
import { type LoadShape, requestOf } from "./load/load.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startServer } from "./server-process.ts";

/** Number of calls between two memory samples. */
const callsPerSample = 1_000_000;

/** Number of memory samples after the first sample, which is taken when the server has started. */
const samples = 2;

/** Seconds under load between two call counts. */
const stepS = 2;

/** Numbers of idle connections. Memory that does not depend on this number is in both samples. */
const fewIdle = 1_000;
const manyIdle = 4_000;

/** Number of connections that are opened at the same time, which is less than usual backlogs. */
const openedAtOnce = 100;

/**
 * Measures resident memory after a garbage collection, at the start, after one and after two million calls, and of each
 * idle HTTP/1.1 connection.
 */
export async function measureMemory({ subjects, load, shape }: Scenario): Promise<readonly MemoryFigures[]> {
  const figures: MemoryFigures[] = [];
  for (const subject of subjects) {
    await using server = await start(subject);
    const rssBytes = [(await server.settle()).rssBytes];
    const idleConnectionBytes = await measureIdle(server, shape);
    for (let sample = 0; sample < samples; sample += 1) {
      for (let calls = 0; calls < callsPerSample;) calls += (await load(server.port, stepS)).requests;
      rssBytes.push((await server.settle()).rssBytes);
    }
    figures.push({ name: subject.name, rssBytes, idleConnectionBytes });
  }
  return figures;
}

async function start({ program, environment }: Subject): Promise<RunningServer & AsyncDisposable> {
  const server = await startServer(program, environment);
  return { ...server, [Symbol.asyncDispose]: () => server.stop() };
}

/** Returns the memory of a connection that has sent one request. The connections are closed afterwards. */
async function measureIdle(server: RunningServer, shape: LoadShape): Promise<number> {
  const open: Http1Connection[] = [];
  const rssWith = async (count: number): Promise<number> => {
    while (open.length < count) {
      const opened = Array.from({ length: openedAtOnce }, () => openHttp1Connection(server.port));
      await Promise.all(opened.map((connection) => callOn(connection, shape)));
      open.push(...opened);
    }
    return (await server.settle()).rssBytes;
  };
  const few = await rssWith(fewIdle);
  const many = await rssWith(manyIdle);
  const closed = open.filter(({ socket }) => socket.destroyed).length;
  if (closed > 0) throw new Error(`the server closed ${closed} idle connections before they were measured`);
  for (const { socket } of open) socket.destroy();
  return (many - few) / (manyIdle - fewIdle);
}

function callOn(connection: Http1Connection, shape: LoadShape): Promise<string> {
  return new Promise((resolve, reject) => {
    connection.socket.on("error", reject);
    connection.send(requestOf(shape, shape), resolve);
  });
}
