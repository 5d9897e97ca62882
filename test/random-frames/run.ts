import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { endsWell } from "./sequence.ts";

// `npm run test:random-frames`: random sequences of frames against the gateway's own HTTP/2 engine. Whatever comes, it
// must not throw, must speak in frames that are well formed, name an error code of RFC 9113 if it ends the connection,
// tell every stream of its end and hold nothing afterwards.
//
// `-- --sequences 1000000 --seconds 600` for longer; a sequence that fails names its seed, `-- --seed 42` repeats it.

const { values } = parseArgs({
  options: {
    sequences: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "45" },
    seed: { type: "string" },
  },
});

/** As many connections at once as keep the event loop from having to turn for each. */
const atOnce = 256;

/** The heap may grow by this while all else is collected: a thousandth of what would be leaked by so many connections. */
const heapGrowthBytesMax = 64 * 1024 * 1024;

const problems: string[] = [];
let done = 0;
const untilMs = performance.now() + Number(values.seconds) * 1000;
const first = values.seed === undefined ? Math.trunc(Math.random() * 2 ** 31) : Number(values.seed);
const most = values.seed === undefined ? Number(values.sequences) : 1;
let heapBytes = 0;

while (done < most && performance.now() < untilMs && problems.length === 0) {
  const seeds = Array.from({ length: Math.min(atOnce, most - done) }, (_, i) => first + done + i);
  const found = await Promise.all(seeds.map(endsWell));
  for (const [i, problem] of found.entries())
    if (problem !== undefined) problems.push(`seed ${String(seeds[i])}: ${problem}`);
  done += seeds.length;
  // Measured once all is warm, and at the end.
  if (heapBytes === 0 && done > 20_000) heapBytes = process.memoryUsage().heapUsed;
}
const grownBytes = heapBytes === 0 ? 0 : process.memoryUsage().heapUsed - heapBytes;
if (grownBytes > heapGrowthBytesMax) problems.push(`the heap has grown by ${String(grownBytes)} bytes`);

for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(`${String(done)} sequences of frames, ${String(problems.length)} of them ended badly\n`);
const file = process.env["TEST_REPORT"];
if (file !== undefined) {
  writeFileSync(
    file,
    JSON.stringify({ numPassedTests: problems.length === 0 ? 1 : 0, numFailedTests: problems.length }),
  );
}
process.exitCode = problems.length === 0 ? 0 : 1;
