import { openGrpcCalls } from "./grpc-calls.ts";
import type { OpenResponse, OpenLoadOptions, OpenResult } from "./open-calls.ts";
import { openRestCalls } from "./rest-calls.ts";

// A client that sends deletions at a fixed rate, like many independent callers, without waiting for responses. The
// client prints its result as JSON.

const options: OpenLoadOptions = JSON.parse(process.argv[2] ?? "");

/** Maximum number of open calls. Further calls are queued in the client. */
const maxOpen = options.connections ?? 2_000;

const openCalls = options.protocol === "grpc" ? openGrpcCalls : openRestCalls;
const calls = await openCalls(options.port, options.connections);
const responses: OpenResponse[] = [];
let open = 0;
let onLastResponse = (): void => undefined;

const startedMs = performance.now();
const endMs = startedMs + options.durationS * 1_000;
let plant = options.firstPlant;
for (let dueMs = startedMs; dueMs < endMs; dueMs += gapMs()) {
  while (performance.now() < dueMs || isFull()) await new Promise((resolve) => setTimeout(resolve, 1));
  send(dueMs);
}
const allResponded = new Promise<void>((resolve) => (onLastResponse = resolve));
if (open > 0) await allResponded;
const result: OpenResult = { responses, tookS: (performance.now() - startedMs) / 1_000 };
process.stdout.write(JSON.stringify(result));
calls.close();

function isFull(): boolean {
  return open >= maxOpen;
}

/** Returns the time to a Poisson process's next call. */
function gapMs(): number {
  return (-Math.log(1 - Math.random()) / options.callsPerS) * 1_000;
}

function send(dueMs: number): void {
  open += 1;
  const startMs = options.connections === undefined ? dueMs : performance.now();
  calls.send(plant, (kind) => {
    responses.push({ latencyMs: performance.now() - startMs, startMs: startMs - startedMs, kind });
    open -= 1;
    if (open === 0) onLastResponse();
  });
  plant += 1;
}
