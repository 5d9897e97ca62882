import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { Dice } from "../../../../testing/src/dice.ts";
import { retainedBytes } from "../../../../testing/src/http/retained-bytes.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";
import { seeds, tokens } from "./corpus.ts";
import { http1Problem } from "./http1.ts";
import { frameStarts, http2ClientProblem, http2ServerProblem } from "./http2.ts";

// `npm run suite -- engine-fuzz` attacks the engine with inputs that its coverage guides: an input that reaches a new
// block of the engine joins the corpus, and later inputs are mutations of the corpus. node:http judges where a request
// ends, and node:http2 which fields and bytes a stream has. A disagreement, a crash, a second of CPU time for one input,
// an open connection afterwards, and memory that stays are failures.
//
// Use `-- --seconds 900` for a longer run. A failure prints its input, and `-- --input http1:474554…` repeats it.

const targets = { http1: http1Problem, http2: http2ServerProblem, client: http2ClientProblem } as const;
type Target = keyof typeof targets;
const targetNames: readonly Target[] = ["http1", "http2", "client"];
type Input = { readonly target: Target; readonly bytes: Buffer };
const { values } = parseArgs({ options: { seconds: { type: "string", default: "20" }, input: { type: "string" } } });

/** Maximum bytes in an input: more than a head, a window or a chunk needs to exceed its limit. */
const maxInputBytes = 64 * 1024;
/** Number of inputs for warm-up. Afterwards, code is compiled and tables have grown. */
const warmInputs = 2_000;
/** Maximum number of bytes that may be retained after the warm-up, in addition to the corpus. */
const maxGrowthBytes = 16 * 1024 * 1024;

/** Number of inputs that run concurrently. If they reach a new block together, they run again in halves. */
const batchInputs = 64;
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
/** The blocks of each function, by their offsets, and whether an input has reached them. */
const blocks = new Map<string, Map<string, boolean>>();
let reached = 0;

/**
 * Returns whether a block of the engine was reached since the last call that no input had reached before.
 *
 * V8 reports the blocks of a function that were not reached. The others were.
 */
function hasNewBlock(records: boolean): boolean {
  let isNew = false;
  session.post("Profiler.takePreciseCoverage", (error, { result }) => {
    if (error !== null) throw error;
    for (const { url, functions } of result.filter((script) => script.url.includes("/gateway/src/engine/")))
      for (const { ranges } of functions) {
        const [{ startOffset: from, count } = { startOffset: 0, count: 0 }] = ranges;
        const known = blocks.get(`${url} ${String(from)}`) ?? new Map<string, boolean>();
        blocks.set(`${url} ${String(from)}`, known);
        const missed = ranges.filter((range) => range.count === 0);
        for (const { startOffset, endOffset } of [ranges[0], ...missed].filter((range) => range !== undefined)) {
          const key = `${String(startOffset)} ${String(endOffset)}`;
          if (!known.has(key)) known.set(key, false);
        }
        if (count === 0) continue;
        for (const [key, wasReached] of known) {
          const [start = 0, end = 0] = key.split(" ").map(Number);
          if (wasReached || missed.some((range) => range.startOffset <= start && range.endOffset >= end)) continue;
          isNew = true;
          if (!records) continue;
          known.set(key, true);
          reached += 1;
        }
      }
  });
  return isNew;
}

/** Returns a mutation of an input of the corpus, or a splice of two. */
function mutate(dice: Dice, corpus: readonly Input[]): Input {
  const target = dice.oneOf(targetNames);
  const others = corpus.filter((input) => input.target === target);
  let { bytes } = dice.oneOf(others);
  for (let rounds = 1 + dice.roll(4); rounds > 0; rounds--) {
    const at =
      target === "http1" || dice.roll(4) === 0 ? dice.roll(bytes.byteLength + 1) : dice.oneOf(frameStarts(bytes));
    const end = Math.min(bytes.byteLength, at + dice.roll(dice.oneOf([2, 10, 100])));
    const inserted = dice.oneOf<() => Uint8Array>([
      () => Buffer.alloc(0),
      () => dice.bytes(4),
      () => dice.oneOf(tokens[target])(dice),
      () => bytes.subarray(at, end),
      () => dice.oneOf(others).bytes.subarray(dice.roll(at + 1)),
      () => Buffer.alloc(dice.roll(20_000), dice.roll(256)),
    ])();
    bytes = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(dice.oneOf([at, end]))]);
  }
  return { target, bytes: bytes.subarray(0, maxInputBytes) };
}

// Ends the process if an input keeps the event loop busy for a second of CPU time, which this thread cannot notice.
const running = new Uint8Array(new SharedArrayBuffer(2 * batchInputs * (maxInputBytes + 16)));
const counter = new Int32Array(new SharedArrayBuffer(8));
const watchdog = `
  const { workerData: { running, counter } } = require("node:worker_threads");
  let [seen, sinceUs] = [-1, 0];
  setInterval(() => {
    const { user, system } = process.cpuUsage();
    if (counter[0] !== seen) [seen, sinceUs] = [counter[0], user + system];
    else if (user + system - sinceUs > 1e6) {
      console.error("one of these takes more than a second:\\n" + Buffer.from(running.subarray(0, counter[1])).toString());
      process.kill(process.pid, "SIGKILL");
    }
  }, 100);`;
new Worker(watchdog, { eval: true, workerData: { running, counter } }).unref();
const show = ({ target, bytes }: Input): string => `--input ${target}:${bytes.toString("hex")}`;

/** Runs inputs concurrently, and records the problems. */
async function run(inputs: readonly Input[]): Promise<void> {
  counter[1] = new TextEncoder().encodeInto(inputs.map(show).join("\n"), running).written;
  Atomics.add(counter, 0, 1);
  const found = await Promise.all(inputs.map(({ target, bytes }) => targets[target](bytes)));
  Atomics.add(counter, 0, 1);
  for (const [i, problem] of found.entries()) {
    const input = inputs[i];
    if (problem !== undefined && input !== undefined) problems.push(`${problem}\n${show(input)}`);
  }
}

/** Runs inputs, and adds those to the corpus that reach a new block. Halves a batch until one of them is found. */
async function keepNew(inputs: readonly Input[], isKnown: boolean): Promise<void> {
  await run(inputs);
  if (problems.length > 0 || !hasNewBlock(isKnown || inputs.length === 1) || isKnown) return;
  const [first] = inputs;
  if (inputs.length === 1 && first !== undefined) return void corpus.push(first);
  const middle = inputs.length >>> 1;
  await keepNew(inputs.slice(0, middle), false);
  await keepNew(inputs.slice(middle), false);
}

const [replayedTarget, replayed] = values.input?.split(":") ?? [];
const corpus: Input[] = targetNames.flatMap((target) => seeds[target].map((bytes) => ({ target, bytes })));
const repeated = targetNames.filter((target) => target === replayedTarget);
const queue: Input[] =
  replayed === undefined ? [...corpus] : repeated.map((target) => ({ target, bytes: Buffer.from(replayed, "hex") }));
const dice = new Dice(testSeed);
const untilMs = performance.now() + (replayed === undefined ? Number(values.seconds) * 1000 : 0);
const problems: string[] = [];
let done = 0;
let warmBytes: number | undefined;
process.on("uncaughtException", (error) => problems.push(`an uncaught error: ${error.stack ?? error.message}`));
while (problems.length === 0 && (queue.length > 0 || performance.now() < untilMs)) {
  const isFirst = queue.length > 0;
  const inputs = isFirst ? queue.splice(0) : Array.from({ length: batchInputs }, () => mutate(dice, corpus));
  await keepNew(inputs, isFirst);
  done += inputs.length;
  if (done >= warmInputs) warmBytes ??= await retainedBytes();
}
const corpusBytes = corpus.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
const grownBytes = warmBytes === undefined ? 0 : (await retainedBytes()) - warmBytes - corpusBytes;
if (grownBytes > maxGrowthBytes) problems.push(`${String(grownBytes)} bytes are retained`);
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(
  `${String(done)} inputs from seed ${String(testSeed)}, ${String(corpus.length)} in the corpus, ${String(reached)} blocks, ${String(grownBytes)} bytes retained, ${String(problems.length)} problems\n`,
);
const file = process.env["TEST_REPORT"];
const report = { numPassedTests: problems.length === 0 ? 1 : 0, numFailedTests: problems.length === 0 ? 0 : 1 };
if (file !== undefined) writeFileSync(file, JSON.stringify(report));
process.exit(problems.length === 0 ? 0 : 1);
