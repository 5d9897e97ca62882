import { once } from "node:events";
import { openHttp1Connection, type Http1Connection } from "./http1-connection.ts";
import { percentilesOf } from "./load.ts";
import type { OpenClientOptions, OpenLoadResult } from "./open-load.ts";

// A load generator whose requests are due at random times, as from independent callers. The program reads its options,
// sends the load, and prints the result as JSON.

/**
 * Seconds under load before the measured time, in which the client's code is compiled. Requests that are due in this
 * time are not counted.
 */
const warmUpS = 0.3;

/** The pause in ms of this client above which other processes have delayed it, and not its own garbage collection. */
const minStallMs = 1;

const { request, connections, requestsPerS, port, durationS }: OpenClientOptions = JSON.parse(process.argv[2] ?? "");

const warmUpMs = warmUpS * 1_000;
const dueMs = poissonArrivals(requestsPerS, warmUpMs + durationS * 1_000);
const latenciesMs = new Float64Array(dueMs.length);
const idle: Http1Connection[] = Array.from({ length: connections }, () => openHttp1Connection(port));
await Promise.all(idle.map(({ socket }) => once(socket, "connect")));

let sent = 0;
let responses = 0;
let failures = 0;
let stalledMs = 0;
const startedMs = performance.now();
await new Promise<void>((resolve) => {
  let lastMs = startedMs;
  const sendUntilDone = (): void => {
    const nowMs = performance.now();
    if (nowMs - lastMs > minStallMs) stalledMs += nowMs - lastMs;
    lastMs = nowMs;
    sendDue();
    if (responses === dueMs.length) return resolve();
    // The loop does not sleep, because a timer has a resolution of a millisecond.
    setImmediate(sendUntilDone);
  };
  sendUntilDone();
});
const tookS = (performance.now() - startedMs) / 1_000 - warmUpS;
for (const { socket } of idle) socket.destroy();

const measured = latenciesMs.subarray(dueMs.findIndex((due) => due >= warmUpMs));
const result: OpenLoadResult = {
  requests: measured.length,
  failures,
  stalledShare: stalledMs / 1_000 / (tookS + warmUpS),
  durationS: tookS,
  latencyUs: percentilesOf(measured.map((ms) => ms * 1_000)),
};
process.stdout.write(JSON.stringify(result));

/** Sends the requests that are due, while connections are idle. Later requests wait for a connection. */
function sendDue(): void {
  const nowMs = performance.now() - startedMs;
  while (sent < dueMs.length && (dueMs[sent] ?? 0) <= nowMs) {
    // The connection that has been idle for longest is used, so that all connections are used.
    const connection = idle.shift();
    if (connection === undefined) return;
    const index = sent++;
    connection.send(request, (header) => {
      latenciesMs[index] = performance.now() - startedMs - (dueMs[index] ?? 0);
      responses += 1;
      if (!header.startsWith("HTTP/1.1 2")) failures += 1;
      idle.push(connection);
      sendDue();
    });
  }
}

/** Returns the times of a Poisson process's arrivals in ms, from 0 to a duration. */
function poissonArrivals(perS: number, durationMs: number): Float64Array {
  const times: number[] = [];
  const meanGapMs = 1_000 / perS;
  for (let atMs = 0; atMs < durationMs; atMs -= Math.log(1 - Math.random()) * meanGapMs) times.push(atMs);
  return Float64Array.from(times);
}
