import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

// `npm run test:conformance`: runs Connect's conformance suite against this server. Needs Go, for the suite.
// Once for each server of HTTP/2 that the gateway has. Arguments go to the suite: `-- --run 'Basic/**' --trace`.

const suiteModule = "connectrpc.com/conformance";

/** The newest release whose dependencies can all be had from the module proxy. */
const suiteVersion = "v1.0.6";

/** 64 MiB: with `--trace` every failing case comes with its bytes. */
const outputLimitBytes = 64 * 1024 * 1024;

/** What may serve HTTP/2. */
const http2Engines = ["node", "own"];

/** The cases for all the features that we declare: a feature that is no longer declared must not go unnoticed. */
const casesWanted = 5286;

/** Runs of the suite until one passes: its deadlines are races that a busy machine loses now and then, not each time. */
const triesMax = 3;

const folder = import.meta.dirname;
const suite = join(goPath(), "bin", "connectconformance");

if (!isInstalled()) {
  execFileSync("go", ["install", `${suiteModule}/cmd/connectconformance@${suiteVersion}`], { stdio: "inherit" });
}
generateMessages();
// The server imports what was just generated, so nothing could check its types before.
execFileSync("tsc", ["-p", folder], { stdio: "inherit" });
const runs = http2Engines.map(trySuite);
report(runs);
process.exitCode = runs.every(({ exitCode }) => exitCode === 0) ? 0 : 1;
const isWhole = process.argv.length === 2;
if (isWhole && runs.some(({ passed }) => passed !== casesWanted)) {
  console.error(`not every run passed ${casesWanted} cases: has features.yaml lost some?`);
  process.exitCode = 1;
}

/** What the suite came to. */
interface Run {
  readonly exitCode: number;
  readonly passed: number;
  readonly failed: number;
}

function trySuite(http2Engine: string): Run {
  let run = runSuite(http2Engine);
  for (let tries = 1; tries < triesMax && run.exitCode !== 0; tries++) run = runSuite(http2Engine);
  return run;
}

function runSuite(http2Engine: string): Run {
  console.log(`\nwith ${http2Engine} for HTTP/2`);
  const { stdout, status } = spawnSync(suite, [...options(), "--", process.execPath, join(folder, "server.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: outputLimitBytes,
    env: { ...process.env, HTTP2_ENGINE: http2Engine },
  });
  process.stdout.write(stdout);
  const [, passed, failed] = /(\d+) passed, (\d+) failed/.exec(stdout) ?? [];
  return { exitCode: status ?? 1, passed: Number(passed ?? 0), failed: Number(failed ?? 0) };
}

// Counts in the form of vitest's report, which .ci/run adds up.
function report(all: readonly Run[]): void {
  const file = process.env["TEST_REPORT"];
  if (file === undefined) return;
  const sum = (figure: (run: Run) => number): number => all.reduce((total, run) => total + figure(run), 0);
  const counts = { numPassedTests: sum(({ passed }) => passed), numFailedTests: sum(({ failed }) => failed) };
  writeFileSync(file, JSON.stringify(counts));
}

function isInstalled(): boolean {
  const { error, stdout } = spawnSync(suite, ["--version"], { encoding: "utf8" });
  return error === undefined && stdout.includes(suiteVersion);
}

// The messages of the suite are in its module, so that they are always those of the suite that runs.
function generateMessages(): void {
  const download = execFileSync("go", ["mod", "download", "-json", `${suiteModule}@${suiteVersion}`], {
    encoding: "utf8",
  });
  const { Dir: directory }: { Dir: string } = JSON.parse(download);
  execFileSync("buf", ["generate", join(directory, "proto"), "--template", join(folder, "buf.gen.yaml")], {
    cwd: join(folder, "../.."),
    stdio: "inherit",
  });
}

function options(): string[] {
  return ["--mode", "server", "--conf", join(folder, "features.yaml"), ...process.argv.slice(2)];
}

function goPath(): string {
  return execFileSync("go", ["env", "GOPATH"], { encoding: "utf8" }).trim();
}
