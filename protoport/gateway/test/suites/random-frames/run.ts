import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { retainedBytes } from "../../../../testing/src/http/retained-bytes.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";
import { clientProblem } from "./response-sequence.ts";
import { serverProblem } from "./sequence.ts";

// `npm run suite -- random-frames` sends random frame sequences to the HTTP/2 engine, to its server and, with odd
// seeds, to its client. The side must not throw, must send only well-formed frames, use an RFC 9113 error code if it
// closes the connection, report when each stream ends, and leak no memory.
//
// Use `-- --sequences 1000000 --seconds 600` for a longer run. A failed sequence prints its seed, and `-- --seed 42`
// repeats it.

const { values } = parseArgs({
  options: {
    sequences: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "45" },
    seed: { type: "string" },
  },
});

/** Enough concurrent connections to avoid an event loop turn for each. */
const concurrency = 256;

/** How many sequences run for warm-up. Afterwards, code is compiled and tables have grown. */
const warmSequences = 10_000;

/** Maximum number of bytes that may be retained after the warm-up, 16 for each of half a million sequences. */
const growthBytesMax = 8 * 1024 * 1024;

const problems: string[] = [];
let done = 0;
const untilMs = performance.now() + Number(values.seconds) * 1000;
const first = values.seed === undefined ? testSeed : Number(values.seed);
const most = values.seed === undefined ? Number(values.sequences) : 1;
let warmBytes: number | undefined;

while (done < most && performance.now() < untilMs && problems.length === 0) {
  const seeds = Array.from({ length: Math.min(concurrency, most - done) }, (_, i) => first + done + i);
  const found = await Promise.all(seeds.map((seed) => (seed % 2 === 0 ? serverProblem(seed) : clientProblem(seed))));
  for (const [i, problem] of found.entries())
    if (problem !== undefined) problems.push(`seed ${String(seeds[i])}: ${problem}`);
  done += seeds.length;
  if (done > warmSequences) warmBytes ??= await retainedBytes();
}
const grownBytes = warmBytes === undefined ? 0 : (await retainedBytes()) - warmBytes;
const memory =
  warmBytes === undefined
    ? "too few to measure memory"
    : `${grownBytes} bytes retained since the first ${warmSequences}`;
if (grownBytes > growthBytesMax) problems.push(memory);

for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(`${String(done)} sequences of frames, ${String(problems.length)} failed; ${memory}\n`);
const file = process.env["TEST_REPORT"];
if (file !== undefined) {
  writeFileSync(
    file,
    JSON.stringify({
      numPassedTests: problems.length === 0 ? 1 : 0,
      numFailedTests: problems.length,
      detail: `${done.toLocaleString("en")} sequences`,
    }),
  );
}
process.exitCode = problems.length === 0 ? 0 : 1;
