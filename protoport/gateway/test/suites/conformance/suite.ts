import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

// Runs Connect's conformance suite, which is built with Go. Program arguments go to the suite, such as `-- --run
// 'Basic/**' --trace`.

const suiteModule = "connectrpc.com/conformance";
const suiteVersion = "v1.0.7";

/** 64 MiB, because `--trace` prints the bytes for every failing case. */
const outputLimitBytes = 64 * 1024 * 1024;

/**
 * How many servers the suite runs concurrently, with eight calls each. The suite gives a server ten seconds to start,
 * which four servers that start together on a busy machine exceed.
 */
const maxServers = 1;

/** The gateway's servers; "none" is for the client, which the suite's own servers serve. */
export interface Served {
  readonly server: "own" | "mounted" | "none";
  /** The handlers' library, by default Connect. */
  readonly handlers?: "grpc-js" | "grpc-js with messages";
  /** The cases that may be repeated once. */
  readonly repeatable: readonly RegExp[];
  /** Number of cases for all declared features, to detect a feature that is no longer declared. */
  readonly casesWanted: number;
}

/**
 * The cases that depend on the machine's speed. A server must read a call's deadline within half a second, or must
 * report an expired deadline before the suite's client, which has the same deadline, stops reading. A client that
 * cancels 5 ms after its last message must cancel before the response, which arrives after half a second.
 */
export const timed: RegExp = /^(?:Deadline Propagation|Timeouts)\/|^Client Cancellation\/.*\/cancel-after-close-send$/;

const folder = import.meta.dirname;
const features = join(folder, "features.yaml");
const serverOptions = ["--mode", "server", "--max-servers", String(maxServers), "--conf", features];
const clientOptions = ["--mode", "client", "--conf", join(folder, "client-features.yaml")];
const suite = join(goPath(), "bin", "connectconformance");

/** Runs the suite for some servers, and sets the exit code. */
export function runConformance(servers: readonly Served[]): void {
  if (!isInstalled())
    execFileSync("go", ["install", `${suiteModule}/cmd/connectconformance@${suiteVersion}`], { stdio: "inherit" });
  generateMessages();
  // The server imports the code that was just generated, so its types could not be checked before.
  execFileSync("tsc", ["-p", folder], { stdio: "inherit" });
  const runs = servers.map(runSuite);
  report(runs);
  process.exitCode = runs.every(({ exitCode }) => exitCode === 0) ? 0 : 1;
  const isWhole = process.argv.length === 2;
  if (isWhole && runs.some(({ passed }, at) => passed !== servers[at]?.casesWanted)) {
    console.error("a run did not pass the number of cases that is wanted: has features.yaml lost some?");
    process.exitCode = 1;
  }
}

/** The suite's outcome. */
interface Run {
  readonly exitCode: number;
  readonly passed: number;
  readonly failed: number;
  /** The failed cases, by name. */
  readonly failures: readonly string[];
}

function runSuite(served: Served): Run {
  const { repeatable } = served;
  const run = runCases(served, process.argv.slice(2));
  const repeated = run.failures.filter((name) => repeatable.some((pattern) => pattern.test(name)));
  if (repeated.length === 0 || repeated.length !== run.failed) return run;
  const again = runCases(
    served,
    repeated.flatMap((name) => ["--run", name]),
  );
  return { ...again, passed: run.passed + again.passed };
}

function runCases({ server, handlers }: Served, cases: readonly string[]): Run {
  console.log(`\nserver: ${server}${handlers === undefined ? "" : `, handlers of ${handlers}`}`);
  const isClient = server === "none";
  const options = isClient ? clientOptions : serverOptions;
  const command = [process.execPath, join(folder, isClient ? "client.ts" : "server.ts")];
  const ours = { SERVER: server, HANDLERS: handlers ?? "", NODE_COMPILE_CACHE: join(folder, "gen/.compile-cache") };
  const { stdout, status } = spawnSync(suite, [...options, ...cases, "--", ...command], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: outputLimitBytes,
    env: { ...process.env, ...ours },
  });
  process.stdout.write(stdout);
  const [, passed, failed] = /(\d+) passed, (\d+) failed/.exec(stdout) ?? [];
  const failures = [...stdout.matchAll(/^FAILED: (.+):$/gm)].flatMap(([, name]) => name ?? []);
  return { exitCode: status ?? 1, passed: Number(passed ?? 0), failed: Number(failed ?? 0), failures };
}

// Reports counts as vitest does, which .ci/run adds up.
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

// Generated from the suite's module, so that the messages always match the suite that runs.
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
