import { openGrpcCalls } from "./grpc-calls.ts";
import type { OpenAnswer, OpenOrder, OpenSeen } from "./open-calls.ts";
import { openRestCalls } from "./rest-calls.ts";

// A client that sends deletions at a rate of its own, as many independent callers do, whatever comes back: an overload
// is a load that does not wait for answers. Prints what it saw as JSON.

/** Calls at most that are on their way. Further ones wait here, and that counts as the server's time. */
const openMax = 2_000;

const order: OpenOrder = JSON.parse(process.argv[2] ?? "");
const calls = order.protocol === "grpc" ? openGrpcCalls(order.port) : openRestCalls(order.port);
const answers: OpenAnswer[] = [];
let open = 0;
let lastAnswer = (): void => undefined;

const startedMs = performance.now();
const endMs = startedMs + order.durationS * 1_000;
let plant = order.firstPlant;
for (let dueMs = startedMs; dueMs < endMs; dueMs += gapMs()) {
  while (performance.now() < dueMs || isFull()) await new Promise((resolve) => setTimeout(resolve, 1));
  send(dueMs);
}
const allAnswered = new Promise<void>((resolve) => (lastAnswer = resolve));
if (open > 0) await allAnswered;
const seen: OpenSeen = { answers, tookS: (performance.now() - startedMs) / 1_000 };
process.stdout.write(JSON.stringify(seen));
calls.close();

function isFull(): boolean {
  return open >= openMax;
}

/** The gap to the next call of a Poisson process. */
function gapMs(): number {
  return (-Math.log(1 - Math.random()) / order.callsPerS) * 1_000;
}

function send(dueMs: number): void {
  open += 1;
  calls.send(plant, (kind) => {
    answers.push({ latencyMs: performance.now() - dueMs, dueMs: dueMs - startedMs, kind });
    open -= 1;
    if (open === 0) lastAnswer();
  });
  plant += 1;
}
