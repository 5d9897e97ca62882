import { execFileSync, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
import { hasProgram, testSeed } from "@protoport/testing";
import { answer, receiving, startEngine } from "../../../../testing/src/http2/http2-engine.ts";
import { runRoundTrips } from "./hpack-round-trips.ts";

// `npm run suite -- h2spec` runs two HTTP/2 implementations in Go against the engine.
//
// h2spec is a conformance suite. The engine listens without HTTP/1.1, because on a shared port, an invalid preface is an
// invalid HTTP/1.1 request. Arguments are passed to h2spec, such as `-- --verbose http2/6.9`.
//
// Go's HPACK exchanges random header lists with the engine's. `-- --seed 42` repeats one connection's lists.

type Tally = { readonly passed: number; readonly failed: number };
const suiteModule = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/** This release's cases, including the strict ones. */
const casesWanted = 146;

/** Milliseconds until a response: long enough to open more streams than allowed. */
const respondAfterMs = 20;

/** How many connections make HPACK round trips, which takes a few seconds. */
const roundTripsWanted = 5000;

if (!hasProgram("go")) {
  process.stderr.write("suite h2spec needs Go on PATH to build h2spec and the other end of HPACK: https://go.dev/dl\n");
  process.exit(1);
}
const args = process.argv.slice(2);
const [option, seed] = args;
const limits = { concurrentStreams: 16 };
const tallies: Tally[] = [];
if (option !== "--seed") tallies.push(await runSuite());
if (option === "--seed") tallies.push(await roundTrips(Number(seed), 1));
else if (args.length === 0) tallies.push(await roundTrips(testSeed, roundTripsWanted));
const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
const file = process.env["TEST_REPORT"];
if (file !== undefined) writeFileSync(file, JSON.stringify({ numPassedTests: passed, numFailedTests: failed }));
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

async function runSuite(): Promise<Tally> {
  const suite = join(execFileSync("go", ["env", "GOPATH"], { encoding: "utf8" }).trim(), "bin", "h2spec");
  if (spawnSync(suite, ["--version"]).error !== undefined)
    execFileSync("go", ["install", suiteModule], { stdio: "inherit" });
  await using server = await startEngine({ serve: respondLater, limits });
  const { address, port } = server.address;
  const options = ["-h", address, "-p", String(port), "--strict", ...args];
  const child = spawn(suite, options, { stdio: ["ignore", "pipe", "inherit"] });
  const output = await text(child.stdout);
  // The failures, if any, and the count.
  const failures = output.indexOf("Failures:");
  process.stdout.write(failures < 0 ? `${output.trimEnd().split("\n").at(-1)}\n` : output.slice(failures));
  const counts = /(\d+) passed, (\d+) skipped, (\d+) failed/.exec(output)?.map(Number) ?? [];
  const [, good = 0, skipped = 0, wrong = 0] = counts;
  // Arguments select cases. Without any, all must run. A skipped case was not checked.
  const missing = args.length > 0 ? skipped + wrong : Math.max(casesWanted - good, skipped + wrong);
  return { passed: good, failed: missing };
}

async function roundTrips(firstSeed: number, count: number): Promise<Tally> {
  const { connections, blocks, problems } = await runRoundTrips(firstSeed, count);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(
    `${connections} connections of random header lists from seed ${firstSeed}, ${blocks} blocks to and from Go's HPACK, ${problems.length} of 2 directions failed\n`,
  );
  return { passed: 2 - problems.length, failed: problems.length };
}

function respondLater(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setTimeout(() => answer(stream, Buffer.from("response")), respondAfterMs);
}
