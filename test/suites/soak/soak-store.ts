import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Dice } from "../../../protoport/testing/src/dice.ts";
import { runProgram } from "../../../protoport/testing/src/process/child-program.ts";
import { Callers } from "../cluster/callers.ts";
import { PlantSupply } from "../cluster/plants.ts";
import type { Releases } from "../upgrade/next-release.ts";
import { FaultLoops } from "./fault-loops.ts";
import { serverFaults } from "./faults.ts";
import { startLossyLink } from "./lossy-link.ts";
import { routesTo } from "./routes.ts";
import { startStack } from "./stack.ts";
import type { Usage } from "./service.ts";
import type { Fault, StoreDatabase } from "./store-database.ts";
import { checkLogs, judgeCalls, judgeUsage, type Judgement } from "./verdict.ts";

export type SoakOptions = { seconds: number; seed: number; folder: string; releases: Releases };
/** Two callers on each of ten routes with these pauses make 60 to 100 calls per second. */
const callerOptions = { perReplica: 2, pauseMs: 200 };
/** A command's timeout in ms, because commands wait while the database is down, and the machine is busy. */
const commandLimitMs = 60_000;
/** Commands that an operator runs repeatedly. */
const commands: readonly (readonly string[])[] = [["export"], ["deletions", "--plant", "1"], ["check"]];

/** Runs a store, a proxy and their callers under faults, and judges the calls. */
export async function soakStore(
  openDatabase: (dice: Dice) => Promise<StoreDatabase>,
  { seconds, seed, folder, releases }: SoakOptions,
): Promise<Judgement> {
  const dice = new Dice(seed);
  const problems: string[] = [];
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
  const routes = routesTo(stack.proxyPort, lossy.port, stack.replicaPorts, onProblem);
  const callers = new Callers(routes, dice, callerOptions);
  const supply = new PlantSupply(callers, async (ids) => {
    const file = join(folder, `plants-${ids[0]}.txt`);
    // The plants before them have been deleted in the meantime, and the import must not restore them.
    const earlier = Array.from({ length: 100 }, (_, i) => (ids[0] ?? 0n) - BigInt(i) - 1n).filter((id) => id > 0n);
    writeFileSync(file, [...earlier, ...ids].join("\n"));
    const isStored = await run(releases.old, ["import", file], database.url);
    rmSync(file);
    if (!isStored) throw new Error("the outcome is unknown");
  });
  supply.start();
  callers.start();
  await callers.untilAllDelete();
  const startMs = performance.now();
  const loops = new FaultLoops(dice, startMs + seconds * 1_000, onProblem);
  const allFaults = serverFaults(stack, database, releases, dice, () => migrate(releases.next));
  const lateFaults = allFaults.filter(({ isEarly }) => isEarly !== true);
  let before: readonly (Usage | undefined)[] = [];
  const possibleFaults = (): readonly Fault[] => {
    if (performance.now() < startMs + seconds * 500) return allFaults;
    // Measured between two faults, so that both run.
    if (before.length === 0) before = longLived.map((service) => service.usage());
    return lateFaults;
  };
  await Promise.all([
    loops.inject(possibleFaults, 2_000),
    loops.inject(() => database.faults, 5_000),
    loops.repeat("disturbances", () => database.disturb(), 1_000),
    loops.repeat("commands", () => run(releases.old, dice.oneOf(commands), database.url), 20_000),
  ]);

  await callers.untilAllDelete().catch((error: unknown) => onProblem(String(error)));
  await Promise.all([callers.stop(), supply.stop()]);
  await sleep(1_000);
  const after = longLived.map((service) => service.usage());
  await stack.proxy.stop();
  for (const replica of stack.replicas) await replica.stop();
  const connections = await database.countConnections();
  if (connections > 0) onProblem(`${connections} connections to the database are open after all servers have stopped`);
  const history = { created: supply.created, perhapsCreated: supply.perhapsCreated, calls: callers.calls };
  const verdict = judgeCalls(history, await database.readTables());
  const judged = [verdict, ...longLived.map(({ name }, i) => judgeUsage(name, before[i], after[i]))];
  const counts = [...loops.injected, ["responses lost", lossy.cuts + stack.lossy.cuts]];
  return {
    problems: [...problems, ...judged.flatMap((each) => each.problems), ...checkLogs(folder)],
    summary: [
      ...judged.flatMap((each) => each.summary),
      `injected: ${counts.map((each) => each.join(" ")).join(", ")}`,
      `${connections} connections left in the database`,
    ],
  };
}
