import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

// `npm run suite -- conformance`: runs Connect's conformance suite against this server. Needs Go, for the suite. Once
// for the gateway's own server, once for its handler in servers of node's, once for createGrpcTransport. Arguments go
// to the suite: `-- --run 'Basic/**' --trace`.

const suiteModule = "connectrpc.com/conformance";

const suiteVersion = "v1.0.7";

/** 64 MiB: with `--trace` every failing case comes with its bytes. */
const outputLimitBytes = 64 * 1024 * 1024;

/**
 * Servers that the suite runs at the same time, with eight calls each. The suite gives a server ten seconds to start:
 * four that start together on a busy machine take longer.
 */
const serversMax = 1;

/** The servers of the gateway; "none" is for the client, which the suite's own servers serve. */
interface Served {
  readonly server: "own" | "mounted" | "none";
  /** The cases that may be repeated once. */
  readonly repeatable: readonly RegExp[];
  /** The number of cases for all declared features, to detect a feature that is no longer declared. */
  readonly casesWanted: number;
}

/**
 * The cases that depend on the machine: a server must have read the deadline of a call within half a second, or must
 * have responded that it has passed before the suite's own client, which has the same deadline, stops reading. A client
 * that cancels 5 ms after its last message must do so before the response that comes after half a second.
 */
const timed = /^(?:Deadline Propagation|Timeouts)\/|^Client Cancellation\/.*\/cancel-after-close-send$/;

/** node:https drops connections when the machine is busy, regardless of its handler. */
const overNodeHttps = /\/HTTPVersion:1\/.*\bTLS:true\//;

const servers: readonly Served[] = [
  { server: "own", repeatable: [timed], casesWanted: 5286 },
  { server: "mounted", repeatable: [timed, overNodeHttps], casesWanted: 5286 },
  { server: "none", repeatable: [timed], casesWanted: 1068 },
];

const folder = import.meta.dirname;
const serverOptions = [
  "--mode",
  "server",
  "--max-servers",
  String(serversMax),
  "--conf",
  join(folder, "features.yaml"),
];
const clientOptions = ["--mode", "client", "--conf", join(folder, "client-features.yaml")];
const suite = join(goPath(), "bin", "connectconformance");

if (!isInstalled()) {
  execFileSync("go", ["install", `${suiteModule}/cmd/connectconformance@${suiteVersion}`], { stdio: "inherit" });
}
generateMessages();
// The server imports what was just generated, so nothing could check its types before.
execFileSync("tsc", ["-p", folder], { stdio: "inherit" });
const runs = servers.map(runSuite);
report(runs);
process.exitCode = runs.every(({ exitCode }) => exitCode === 0) ? 0 : 1;
const isWhole = process.argv.length === 2;
if (isWhole && runs.some(({ passed }, at) => passed !== servers[at]?.casesWanted)) {
  console.error("a run did not pass the number of cases that is wanted: has features.yaml lost some?");
  process.exitCode = 1;
}

/** The outcome of the suite. */
interface Run {
  readonly exitCode: number;
  readonly passed: number;
  readonly failed: number;
  /** The names of the cases that failed. */
  readonly failures: readonly string[];
}

function runSuite({ server, repeatable }: Served): Run {
  const run = runCases(server, process.argv.slice(2));
  const repeated = run.failures.filter((name) => repeatable.some((pattern) => pattern.test(name)));
  if (repeated.length === 0 || repeated.length !== run.failed) return run;
  const again = runCases(
    server,
    repeated.flatMap((name) => ["--run", name]),
  );
  return { ...again, passed: run.passed + again.passed };
}

function runCases(server: string, cases: readonly string[]): Run {
  console.log(`\nserver: ${server}`);
  const isClient = server === "none";
  const options = isClient ? clientOptions : serverOptions;
  const command = [process.execPath, join(folder, isClient ? "client.ts" : "server.ts")];
  const { stdout, status } = spawnSync(suite, [...options, ...cases, "--", ...command], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: outputLimitBytes,
    env: { ...process.env, SERVER: server, NODE_COMPILE_CACHE: join(folder, "gen/.compile-cache") },
  });
  process.stdout.write(stdout);
  const [, passed, failed] = /(\d+) passed, (\d+) failed/.exec(stdout) ?? [];
  const failures = [...stdout.matchAll(/^FAILED: (.+):$/gm)].flatMap(([, name]) => name ?? []);
  return { exitCode: status ?? 1, passed: Number(passed ?? 0), failed: Number(failed ?? 0), failures };
}

// Counts in the form of vitest's report, which .ci/run adds up.
function report(all: readonly Run[]): void {
  const file = process.env["TEST_REPORT"];
  if (file === undefined) return;
  const sum = (figure: (run: Run) => number): number => all.reduce((total, run) => total + figure(run), 0);
  const counts = {
    numPassedTests: sum(({ passed }) => passed),
    numFailedTests: sum(({ failed }) => failed),
    detail: suiteVersion,
  };
  writeFileSync(file, JSON.stringify(counts));
}

function isInstalled(): boolean {
  const { error, stdout } = spawnSync(suite, ["--version"], { encoding: "utf8" });
  return error === undefined && stdout.includes(suiteVersion);
}

// Taken from the module of the suite, so that the messages are always those of the suite that runs.
function generateMessages(): void {
  const download = execFileSync("go", ["mod", "download", "-json", `${suiteModule}@${suiteVersion}`], {
    encoding: "utf8",
  });
  const { Dir: directory }: { Dir: string } = JSON.parse(download);
  execFileSync("buf", ["generate", join(directory, "proto"), "--template", join(folder, "buf.gen.yaml")], {
    cwd: join(folder, "../../../../.."),
    stdio: "inherit",
  });
}

function goPath(): string {
  return execFileSync("go", ["env", "GOPATH"], { encoding: "utf8" }).trim();
}
