import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { descriptorSetOf, FileService, KitchenSink, startProxyProcess } from "@protoport/testing/proxy";
import { createTempFolder, Dice, residentBytes, testSeed } from "@protoport/testing/process";
import { Callers, type Outcome } from "./calls.ts";
import { UpstreamProcess } from "./upstreams.ts";

// `npm run suite -- proxy-soak` calls REST and gRPC through a proxy, 500 times a second with different messages,
// including uploads and downloads. Meanwhile, its three upstreams are killed, suspended and restarted, and its
// configuration is reloaded. No call may get another call's response, end without a response or an error, or reach the
// upstreams twice. The upstreams record each call. Use `-- --seconds 600` for a longer run, and `-- --seed 42` for
// other failures.

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    rate: { type: "string", default: "500" },
    seed: { type: "string", default: String(testSeed) },
  },
});

const tickMs = 10;
const perTick = (Number(values.rate) * tickMs) / 1000;
const dice = new Dice(Number(values.seed));
using folder = createTempFolder();
await using stack = new AsyncDisposableStack();
const upstreams: UpstreamProcess[] = [];
for (const name of ["a", "b", "c"]) upstreams.push(stack.use(await UpstreamProcess.open(folder.path, name)));
const addresses = upstreams.map(({ address }) => address);
writeFileSync(folder.file("files.binpb"), descriptorSetOf(KitchenSink.file, FileService.file));
const configuration = folder.file("proxy.yaml");
configure(0);
const proxy = stack.use(await startProxyProcess(["--config", configuration]));
const callers = stack.use(new Callers(proxy.baseUrl));
const untilMs = performance.now() + Number(values.seconds) * 1000;
const outcomes = new Map<number, Outcome>();
const failures = { killed: 0, suspended: 0, restarted: 0, reloads: 0 };
const [made] = await Promise.all([callAll(), breakAll(), reloadAll()]);
await Promise.all(made);
const problems = findProblems();

for (const problem of problems) process.stderr.write(`${problem}\n`);
const { killed, suspended, restarted, reloads } = failures;
const detail = `${outcomes.size.toLocaleString("en")} calls, ${count("right")} succeeded, ${count("error")} failed`;
process.stdout.write(
  `${detail}; upstreams were killed ${killed} times, suspended ${suspended} times and restarted ${restarted} times; ${reloads} reloads; ${Math.round(residentBytes(proxy.command.process.pid) / 2 ** 20)} MiB\n`,
);
const file = process.env["TEST_REPORT"];
if (file !== undefined) {
  const report = { numPassedTests: problems.length === 0 ? 1 : 0, numFailedTests: problems.length };
  writeFileSync(file, JSON.stringify(report));
}
process.exitCode = problems.length === 0 ? 0 : 1;

/** Starts calls at the configured rate, even if many are in flight, and returns all of them. */
async function callAll(): Promise<readonly Promise<void>[]> {
  const calls: Promise<void>[] = [];
  let nextMs = performance.now();
  for (; performance.now() < untilMs; nextMs += tickMs) {
    for (let i = 0; i < perTick; i++) {
      const number = calls.length + 1;
      calls.push(callers.call(number).then((outcome) => void outcomes.set(number, outcome)));
    }
    await pause(Math.max(0, nextMs + tickMs - performance.now()));
  }
  return calls;
}

async function breakAll(): Promise<void> {
  while (performance.now() < untilMs) {
    const one = dice.oneOf(upstreams);
    const durationMs = 50 + dice.roll(2_500);
    const failure = dice.oneOf(["suspended", "killed", "restarted"] as const);
    failures[failure]++;
    if (failure === "suspended") {
      one.suspend();
      await pause(durationMs);
      one.resume();
    } else if (failure === "killed") {
      await one.kill();
      await pause(durationMs / 4);
      await one.start();
    } else await one.restart();
    await pause(dice.roll(500));
  }
}

/** Writes a configuration whose connections to the upstreams differ from the previous one's. */
function configure(version: number): void {
  const upstream = { addresses, descriptors: folder.file("files.binpb"), keepaliveMs: 1_000 + (version % 2) };
  const settings = { listen: { port: 0 }, admin: { port: 0 }, drain: { delayMs: 0 }, upstreams: [upstream] };
  // JSON is YAML.
  writeFileSync(configuration, JSON.stringify(settings));
}

async function reloadAll(): Promise<void> {
  while (performance.now() < untilMs) {
    await pause(500 + dice.roll(5_000));
    configure(++failures.reloads);
    proxy.command.process.kill("SIGHUP");
  }
}

function findProblems(): readonly string[] {
  const times = new Map<number, number>();
  for (const number of upstreams.flatMap((one) => one.calls())) times.set(number, (times.get(number) ?? 0) + 1);
  const doubled = [...times].filter(([, often]) => often > 1).map(([number]) => number);
  const unknown = numbersOf("right").filter((number) => !times.has(number));
  return [
    ...problemOf("got the response of another call", numbersOf("wrong")),
    ...problemOf("ended without a response or an error", numbersOf("lost")),
    ...problemOf("reached the upstreams more than once", doubled),
    ...problemOf("succeeded without reaching an upstream", unknown),
    ...(/^configuration reloaded$/m.test(proxy.command.stdout()) ? [] : ["the configuration was not reloaded"]),
    // Two of three upstreams are available at any time.
    ...(count("right") * 2 > outcomes.size ? [] : ["fewer than half of the calls succeeded"]),
  ];
}

function problemOf(what: string, numbers: readonly number[]): readonly string[] {
  return numbers.length === 0 ? [] : [`${numbers.length} calls ${what}: ${numbers.slice(0, 10).join(", ")}`];
}

function numbersOf(outcome: Outcome): readonly number[] {
  return [...outcomes].flatMap(([number, each]) => (each === outcome ? [number] : []));
}

function count(outcome: Outcome): number {
  return numbersOf(outcome).length;
}
