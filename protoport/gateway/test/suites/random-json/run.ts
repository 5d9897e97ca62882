import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Dice } from "../../../../testing/src/dice.ts";
import { writeRandomJson } from "../../../../testing/src/gateway/both-json-writers.ts";
import { readBothWays } from "../../../../testing/src/gateway/both-readers.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";

// `npm run suite -- random-json` reads random JSON texts for many message types, including hostile ones. The fast
// reader, which uses JSON.parse, must return the same message or error as the exact one. For about as many random
// messages, generated code must write the same JSON as closures, or refuse with the same error.
//
// `-- --texts 10000000 --seconds 3600` runs longer. A failure prints its seed. `-- --seed 42` repeats it. Some faults
// occur only after other texts. To repeat them, start with an earlier seed, and more texts.

const { values } = parseArgs({
  options: {
    texts: { type: "string", default: "200000" },
    seconds: { type: "string", default: "45" },
    seed: { type: "string" },
  },
});

// One seed yields one or two messages with known types. One seed in twenty yields another 60 with random types.
const textsPerSeedWritten = 5;
const most = Number(values.texts);
const first = values.seed === undefined ? testSeed : Number(values.seed);
const untilMs = performance.now() + Number(values.seconds) * 1000;
const problems: string[] = [];
let read = 0;
let accepted = 0;
let written = 0;
while (read < most && performance.now() < untilMs && problems.length < 10) {
  const { isAccepted, problem } = readBothWays(new Dice(first + read));
  if (problem !== undefined) problems.push(`seed ${String(first + read)}: ${problem}`);
  if (isAccepted) accepted += 1;
  try {
    if (read % textsPerSeedWritten === 0) {
      const outcomes = writeRandomJson(first + read / textsPerSeedWritten);
      written += outcomes.written + outcomes.refused;
    }
  } catch (error) {
    const seed = first + read / textsPerSeedWritten;
    problems.push(`seed ${String(seed)}: ${error instanceof Error ? error.message : String(error)}`);
  }
  read += 1;
}

for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(
  `${String(read)} JSON texts, ${String(accepted)} of them valid messages, and ${String(written)} messages to write; ${String(problems.length)} were read or written differently\n`,
);
const file = process.env["TEST_REPORT"];
if (file !== undefined) {
  const numPassedTests = problems.length === 0 ? 1 : 0;
  writeFileSync(file, JSON.stringify({ numPassedTests, numFailedTests: problems.length }));
}
process.exitCode = problems.length === 0 ? 0 : 1;
