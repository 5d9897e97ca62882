import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Dice } from "../../../packages/testing/src/dice.ts";
import { runProgram } from "../../../packages/testing/src/process/child-program.ts";
import { Callers } from "../cluster/callers.ts";
import { checkHistory } from "../cluster/check-history.ts";
import { PlantSupply } from "../cluster/plants.ts";
import type { Releases } from "../upgrade/next-release.ts";
import { serverFaults } from "./faults.ts";
import { startLossyLink } from "./lossy-link.ts";
import { routesTo } from "./routes.ts";
import { startStack } from "./stack.ts";
import type { Usage } from "./service.ts";
import { type Fault, sleepUpTo, type StoreDatabase } from "./store-database.ts";
import { checkLogs, checkUsage } from "./verdict.ts";

/** How a store is soaked. */
export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** The folder of the logs. */
  readonly folder: string;
  readonly releases: Releases;
}

/** The result of a soak. */
export interface SoakResult {
  /** Lines for people. */
  readonly summary: readonly string[];
  /** A sentence for each broken guarantee. */
  readonly problems: readonly string[];
}

/** Two callers on each of ten routes with these pauses make 60 to 100 calls per second. */
const callerOptions = { perReplica: 2, pauseMs: 200 };

/** The time limit of a command in ms: it waits while the database is down, and the machine is busy. */
const commandLimitMs = 60_000;

/** Commands that an operator runs all the time. */
const commands: readonly (readonly string[])[] = [["export"], ["deletions", "--plant", "1"], ["check"]];

/** Runs a store, a proxy and their callers under faults, and judges the calls. */
export async function soakStore(
  openDatabase: (dice: Dice) => Promise<StoreDatabase>,
  { seconds, seed, folder, releases }: SoakOptions,
): Promise<SoakResult> {
  const dice = new Dice(seed);
  const problems: string[] = [];
  const injected = new Map<string, number>();
  const onProblem = (problem: string): void => void problems.push(problem);
  mkdirSync(folder, { recursive: true });
  await using database = await openDatabase(dice);
  const run = async (release: string, args: readonly string[], url: string): Promise<boolean> => {
    const environment = { DATABASE_URL: url, PLANTSTORE_TOKENS: "token-of-the-commands" };
    const { exitCode, stderr } = await runProgram(release, args, { environment, limitMs: commandLimitMs });
    appendFileSync(join(folder, "commands.log"), stderr);
    return exitCode === 0;
  };
  const migrate = async (release: string): Promise<void> => {
    while (!(await run(release, ["migrate"], database.directUrl))) await sleep(1_000);
  };
  await migrate(releases.old);
  await database.prepare();
  await using stack = await startStack(folder, database.url, releases.old, dice, onProblem);
  await using lossy = await startLossyLink(stack.proxyPort, dice);
  const longLived = [stack.replicas[1], stack.proxy];
  const callers = new Callers(
    routesTo(stack.proxyPort, lossy.port, stack.replicaPorts, onProblem),
    dice,
    callerOptions,
  );
  const supply = new PlantSupply(callers, async (ids) => {
    const file = join(folder, "plants.txt");
    // Those before them have been deleted in the meantime; the import must not restore them.
    const earlier = Array.from({ length: 100 }, (_, i) => (ids[0] ?? 0n) - BigInt(i) - 1n).filter((id) => id > 0n);
    writeFileSync(file, [...earlier, ...ids].join("\n"));
    if (!(await run(releases.old, ["import", file], database.url))) throw new Error("the outcome is unknown");
  });
  supply.start();
  callers.start();
  await callers.untilAllDelete();

  const startMs = performance.now();
  const untilMs = startMs + seconds * 1_000;
  const isLate = (): boolean => performance.now() > startMs + seconds * 500;
  const repeat = async (work: () => Promise<unknown>, pauseMs: number): Promise<void> => {
    while (performance.now() < untilMs) {
      await work();
      await sleepUpTo(pauseMs, dice);
    }
  };
  /** Injects each fault once, in the order of the list, then each again and again, in random orders. */
  const inject = async (faults: () => readonly Fault[], pauseMs: number): Promise<void> => {
    let queue: Fault[] = [];
    let cycles = 0;
    await repeat(async () => {
      const possible = faults();
      queue = queue.filter((fault) => possible.includes(fault));
      if (queue.length === 0) {
        queue = [...possible];
        cycles++;
      }
      const [fault] = queue.splice(cycles === 1 ? 0 : dice.roll(queue.length), 1);
      if (fault === undefined) return;
      await fault.inject();
      injected.set(fault.name, (injected.get(fault.name) ?? 0) + 1);
    }, pauseMs);
  };
  const count = (name: string) => () => void injected.set(name, (injected.get(name) ?? 0) + 1);
  const allFaults = serverFaults(stack, database, releases, dice, () => migrate(releases.next));
  const lateFaults = allFaults.filter(({ isEarly }) => isEarly !== true);
  let before: readonly Usage[] = [];
  const possibleFaults = (): readonly Fault[] => {
    if (!isLate()) return allFaults;
    // Between two faults, so that both run.
    if (before.length === 0) before = longLived.map((service) => service.usage());
    return lateFaults;
  };
  await Promise.all([
    inject(possibleFaults, 2_000),
    inject(() => database.faults, 5_000),
    repeat(() => database.disturb().then(count("disturbances"), () => undefined), 1_000),
    repeat(
      () => run(releases.old, dice.oneOf(commands), database.url).then(count("commands"), onCommandTimeout),
      20_000,
    ),
  ]);

  await callers.untilAllDelete().catch((error: unknown) => onProblem(String(error)));
  await Promise.all([callers.stop(), supply.stop()]);
  injected.set("responses lost", lossy.cuts + stack.lossy.cuts);
  await sleep(1_000);
  const after = longLived.map((service) => service.usage());
  longLived.forEach((service, i) => {
    const [one, other] = [before[i], after[i]];
    if (one !== undefined && other !== undefined) problems.push(...checkUsage(service.name, one, other));
  });
  await stack.proxy.stop();
  for (const replica of stack.replicas) await replica.stop();
  const connections = await database.countConnections();
  if (connections > 0) onProblem(`${connections} connections to the database are open after all servers have stopped`);

  const { calls } = callers;
  const { created, perhapsCreated } = supply;
  const tables = await database.readTables();
  const { lost, doubled, wrong } = checkHistory({ created, perhapsCreated, calls }, tables);
  problems.push(...lost, ...doubled, ...wrong, ...checkLogs(folder));
  const countOf = (outcome: string): number => calls.filter((call) => call.outcome === outcome).length;
  if (2 * (countOf("deleted") + countOf("not found")) < calls.length)
    onProblem("less than half of the calls succeeded");
  const outcomes = ["deleted", "not found", "refused", "unknown"].map((outcome) => `${countOf(outcome)} ${outcome}`);
  // Only calls like these show whether a repeated call gets a false response.
  const deleters = new Set(tables.records.map(({ call }) => call));
  const hidden = calls.filter(({ name, outcome }) => outcome === "unknown" && deleters.has(name)).length;
  const usage = longLived.map(({ name }, i) => {
    const [one, other] = [before[i], after[i]];
    return `${name} ${one?.residentMiB} to ${other?.residentMiB} MiB, ${one?.openFiles} to ${other?.openFiles} open files`;
  });
  return {
    problems,
    summary: [
      `${calls.length} calls on ${created.size} plants: ${outcomes.join(", ")}, of which ${hidden} deleted`,
      `${lost.length} lost, ${doubled.length} doubled, ${wrong.length} wrong responses`,
      `injected: ${[...injected].map(([name, times]) => `${name} ${times}`).join(", ")}`,
      `second half: ${usage.join("; ")}; ${connections} connections left`,
    ],
  };
}

function onCommandTimeout(): void {
  // A command may wait for a database that is down.
}
