import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type BothWays, goBothWays } from "../../../../testing/src/gateway/binary-oracle.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";

// `npm run suite -- random-messages` reads and writes random messages with the gateway's generated code and with
// protobuf-es. The message types are random, in proto2, proto3 and edition 2023. Most bytes are well-formed. Some have
// a field with another type than declared, a flipped bit, or are truncated. Messages also have values of any kind in
// their fields. Both must agree.
//
// `-- --messages 10000000 --seconds 600` runs longer. A failure prints its seed. `-- --seed 42` repeats it.

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "45" },
    seed: { type: "string" },
  },
});

const kinds = ["read", "written", "odd"] as const;
const ways = ["fast", "fallback"] as const;
const untilMs = performance.now() + Number(values.seconds) * 1000;
const first = values.seed === undefined ? testSeed : Number(values.seed);
const maxMessages = values.seed === undefined ? Number(values.messages) : 1;
const none = (): BothWays["read"] => ({ fast: 0, fallback: 0 });
const all: BothWays = { read: none(), written: none(), odd: none() };
let problem: unknown;
let seed = first;

for (; count() < maxMessages && performance.now() < untilMs && problem === undefined; seed += 1) {
  try {
    const found = goBothWays(seed);
    for (const kind of kinds) for (const way of ways) all[kind][way] += found[kind][way];
  } catch (error) {
    problem = error;
  }
}

if (problem !== undefined) console.error(problem);
const shares = kinds.map(
  (kind) => `${kind} ${all[kind].fast} by generated code and ${all[kind].fallback} by protobuf-es`,
);
console.log(`${count()} messages of ${seed - first} sets of types: ${shares.join(", ")}`);
const file = process.env["TEST_REPORT"];
if (file !== undefined) {
  const failed = problem === undefined ? 0 : 1;
  writeFileSync(file, JSON.stringify({ numPassedTests: 1 - failed, numFailedTests: failed, numTotalTests: 1 }));
}
process.exitCode = problem === undefined ? 0 : 1;

function count(): number {
  return kinds.flatMap((kind) => ways.map((way) => all[kind][way])).reduce((sum, one) => sum + one, 0);
}
