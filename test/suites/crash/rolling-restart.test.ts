import { expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { type Balancer, startBalancer } from "../../../protoport/testing/src/http/balancer.ts";
import { openGrpcCaller, openRestCaller, startLoad } from "../../support/restart/load.ts";
import { type CommandLine, createTempFolder, type TempFolder } from "@protoport/testing/process";
import { runCommand, startCommandLine } from "../../support/process/index.ts";
import { startPostgres } from "../../support/plants/postgres-server.ts";

const token = "token-of-the-restart-test";
const restarts = 6;
/** Successful calls between two steps, so that every step is under load. */
const callsPerStep = 50;

const postgres = shared(() => startPostgres());

async function startReplica(folder: TempFolder, environment: Readonly<Record<string, string>>, port: number = 0) {
  const replica = startCommandLine(["serve"], folder.path, {
    ...environment,
    PORT: String(port),
    LOG_LEVEL: "info",
    PLANTSTORE_AUDIT: "by-level",
    PLANTSTORE_TOKENS: token,
    // The delay is ten times as long as the balancer takes to detect the drain.
    PLANTSTORE_DRAIN_DELAY_MS: "500",
  });
  const [, found = ""] = await replica.find(/"port":(\d+)/);
  return { replica, port: Number(found) };
}

async function restart(folder: TempFolder, environment: Record<string, string>, old: CommandLine, port: number) {
  expect(await old.stop("SIGTERM")).toBe(0);
  const { replica } = await startReplica(folder, environment, port);
  return replica;
}

const untilReady = (balancer: Balancer, ports: readonly number[]): Promise<void> =>
  expect.poll(() => ports.map((port) => balancer.isReady(port))).toEqual(ports.map(() => true));

test("no call fails while two balanced replicas are restarted in turn", async () => {
  using folder = createTempFolder();
  const environment = { DATABASE_URL: await postgres.createSchema() };
  await runCommand(["migrate"], environment);
  const started = [await startReplica(folder, environment), await startReplica(folder, environment)];
  const ports = started.map(({ port }) => port);
  const replicas = started.map(({ replica }) => replica);
  await using balancer = await startBalancer(ports);
  await untilReady(balancer, ports);
  const callers = [openRestCaller, openRestCaller, openGrpcCaller, openGrpcCaller];
  const load = startLoad(callers.map((open) => open(balancer.address, token)));
  for (let step = 0; step < restarts * ports.length; step++) {
    const before = load.completed();
    await expect.poll(load.completed).toBeGreaterThan(before + callsPerStep);
    const index = step % ports.length;
    const [replica, port] = [replicas[index], ports[index]];
    if (replica === undefined || port === undefined) throw new Error("there is no such replica");
    replicas[index] = await restart(folder, environment, replica, port);
    await untilReady(balancer, ports);
  }
  const { failed, unprocessed, completed } = await load.stop();
  for (const replica of replicas) await replica[Symbol.asyncDispose]();
  expect(failed).toEqual([]);
  expect(completed).toBeGreaterThan(restarts * ports.length * callsPerStep);
  // Each restart may cross one call on each gRPC connection.
  expect(unprocessed).toBeLessThanOrEqual(2 * restarts * ports.length);
}, 300_000);
