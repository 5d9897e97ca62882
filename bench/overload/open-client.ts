import { openGrpcCalls } from "./grpc-calls.ts";
import { openRestCalls } from "./rest-calls.ts";

// A client that sends deletions at a rate of its own, as many independent callers do, whatever comes back: an overload
// is a load that does not wait for answers. Prints what it saw as JSON.

/** What this client is told, as one argument of JSON. */
export interface OpenOrder {
  readonly protocol: "rest" | "grpc";
  readonly port: number;
  /** Calls a second; the gaps between them are random, as between independent callers. */
  readonly callsPerS: number;
  readonly durationS: number;
  /** The id of the first plant; each is deleted once. */
  readonly firstPlant: number;
}

/** What came of a call; a refusal says when to try again. */
export type Outcome = "deleted" | "refused" | "other";

/** One answer: how long it took from when its call was due, and what it was. */
export interface OpenAnswer {
  readonly latencyMs: number;
  /** When its call was due, since the first one. */
  readonly dueMs: number;
  readonly kind: Outcome;
}

/** Calls at most that are on their way. Further ones wait here, and that counts as the server's time. */
const openMax = 2_000;

/** What it saw. */
export interface OpenSeen {
  readonly answers: readonly OpenAnswer[];
  /** From the first call to the last answer. */
  readonly tookS: number;
}

/** Calls over connections that stay open. */
export interface OpenCalls {
  /** Deletes a plant. @param told - called with what came of it */
  send(plant: number, told: (kind: Outcome) => void): void;
  close(): void;
}

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
