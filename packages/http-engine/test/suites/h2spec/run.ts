import { execFileSync, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Http2Stream } from "../../../src/http2/index.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";
import { answer, receiving, startEngine } from "../../../../testing/src/http2/http2-engine.ts";
import { hasProgram } from "../../../../testing/src/process/tools-folder.ts";
import { makeRoundTrips } from "./hpack-round-trips.ts";

// `npm run suite -- h2spec`: what others make of HTTP/2 against the gateway's own engine. Needs Go, for both of
//
// h2spec, the conformance suite of HTTP/2. The engine listens by itself: on a port that it shares with HTTP/1.1, a
// preface that is wrong is a request of HTTP/1.1 that is wrong. Arguments go to the suite: `-- --verbose http2/6.9`.
//
// The round trips of random header lists with the HPACK of Go. `-- --seed 42` repeats those of one connection.

interface Tally {
  readonly passed: number;
  readonly failed: number;
}

const suiteModule = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/** The cases of this release, the strict ones among them. */
const casesWanted = 146;

/** Milliseconds to an answer: as long as it takes to open the streams that together are too many. */
const answerAfterMs = 20;

/** Connections whose header lists are sent both ways: a few seconds of them. */
const roundTripsWanted = 5000;

if (!hasProgram("go")) {
  process.stderr.write(
    "suite h2spec needs Go on PATH, to build h2spec and the other end of HPACK: https://go.dev/dl\n",
  );
  process.exit(1);
}
const args = process.argv.slice(2);
const [option, seed] = args;
const tallies: Tally[] = [];
if (option !== "--seed") tallies.push(await runSuite());
if (option === "--seed") tallies.push(await roundTrips(Number(seed), 1));
else if (args.length === 0) tallies.push(await roundTrips(testSeed, roundTripsWanted));
const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
const file = process.env["TEST_REPORT"];
if (file !== undefined)
  writeFileSync(
    file,
    JSON.stringify({ numPassedTests: passed, numFailedTests: failed, detail: suiteModule.split("@")[1] }),
  );
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

async function runSuite(): Promise<Tally> {
  const suite = join(execFileSync("go", ["env", "GOPATH"], { encoding: "utf8" }).trim(), "bin", "h2spec");
  if (spawnSync(suite, ["--version"]).error !== undefined) {
    execFileSync("go", ["install", suiteModule], { stdio: "inherit" });
  }
  await using engine = await startEngine({ serve: answerLater, limits: { concurrentStreams: 16 } });
  const { address, port } = engine.address;
  const child = spawn(suite, ["-h", address, "-p", String(port), "--strict", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await text(child.stdout);
  // What went wrong, if anything, and the count.
  const failures = output.indexOf("Failures:");
  process.stdout.write(failures < 0 ? `${output.trimEnd().split("\n").at(-1)}\n` : output.slice(failures));
  const [, good = 0, skipped = 0, bad = 0] =
    /(\d+) passed, (\d+) skipped, (\d+) failed/.exec(output)?.map(Number) ?? [];
  // Arguments choose cases; without any it must be all of them. A skipped case was not checked at all.
  const missing = args.length > 0 ? skipped + bad : Math.max(casesWanted - good, skipped + bad);
  return { passed: good, failed: missing };
}

async function roundTrips(firstSeed: number, count: number): Promise<Tally> {
  const { connections, blocks, problems } = await makeRoundTrips(firstSeed, count);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(
    `${connections} connections of random header lists from seed ${firstSeed}, ${blocks} blocks to and from Go's HPACK, ${problems.length} of 2 ways fail\n`,
  );
  return { passed: 2 - problems.length, failed: problems.length };
}

function answerLater(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setTimeout(() => answer(stream, Buffer.from("answer")), answerAfterMs);
}
