import { appendFileSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { type PostgresServer, runSql, startPostgres, startStandby } from "../../support/plants/postgres-server.ts";
import { openShell, startCommandLine } from "../../support/process/index.ts";
import { installCommands } from "./production.ts";

// Runs the commands under "Fail over" in docs/how-to/runbooks/tasks.md while a server uses the primary.

const [compare = "", promote = "", show = "", follow = "", release = "", reset = "", check = ""] = blocksRunBy(
  "test/suites/prometheus/failover.test.ts",
).map(({ text }) => text);
const token = "token-of-the-failover-test";
const [deployedStandbys = ""] =
  /^synchronous_standby_names = .*$/m.exec(readFileSync(join(projectFolder, "deploy/postgresql.conf"), "utf8")) ?? [];

/** Makes a standby connect to a folder in which no server listens. */
async function stopReplication(standbyUrl: string, name: string): Promise<void> {
  await runSql(standbyUrl, `ALTER SYSTEM SET primary_conninfo = 'host=/nowhere user=tester application_name=${name}'`);
  await runSql(standbyUrl, "SELECT pg_reload_conf()");
  const receivers = "SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'";
  await expect.poll(() => runSql(standbyUrl, receivers), { timeout: 20_000 }).toHaveLength(0);
}

test('the commands under "Fail over" promote the standby with all deletions', { timeout: 120_000 }, async () => {
  using folder = createTempFolder();
  await using primary = await startPostgres();
  const url = await primary.createPlants([1n, 2n, 3n, 4n]);
  appendFileSync(join(primary.socketFolder, "data/postgresql.conf"), `${deployedStandbys}\n`);
  await using standbyA = await startStandby(primary, "standby_a");
  await using standbyB = await startStandby(primary, "standby_b");
  // The address that a load balancer or a service would have, which leads to the primary.
  const address = folder.file("primary");
  symlinkSync(primary.socketFolder, address);
  const settings = { PORT: "0", PLANTSTORE_TOKENS: token, DATABASE_URL: url.replaceAll(primary.socketFolder, address) };
  const urlOf = ({ socketFolder }: PostgresServer): string =>
    url.replaceAll(primary.socketFolder, socketFolder).replace(/&options.*/, "");
  const [urlA, urlB] = [urlOf(standbyA), urlOf(standbyB)];
  await using server = startCommandLine(["serve"], folder.path, settings);
  const [, port = ""] = await server.find(/"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/);
  const deletePlant = async (id: number): Promise<number> => {
    const header = { authorization: `Bearer ${token}` };
    return (await fetch(`http://127.0.0.1:${port}/plants/${id}`, { method: "DELETE", headers: header })).status;
  };
  // Only standby_b has the commit, which ANY 1 acknowledges.
  await stopReplication(urlA, "standby_a");
  expect(await deletePlant(1)).toBe(204);
  await primary.stop("kill");
  const urls = { STANDBY_A: urlA, STANDBY_B: urlB, DATABASE_URL: settings.DATABASE_URL };
  await using shell = openShell(folder.path, { PATH: installCommands(folder), ...urls });
  const read = async (commands: string): Promise<string> => {
    await shell.run(`{\n${commands}\n} > printed`);
    return readFileSync(folder.file("printed"), "utf8").trim();
  };
  const [receivedA = 0, receivedB = 0] = (await read(compare)).split("\n").map(Number);
  await shell.run(`STANDBY=$STANDBY_${receivedA > receivedB ? "A" : "B"}`);
  await shell.run(promote);
  rmSync(address);
  symlinkSync(standbyB.socketFolder, address);
  await shell.run("OTHER=$STANDBY_A");
  const next = (await read(show)).replace(/(?<=host=)\S+/, standbyB.socketFolder);
  await shell.run(`CONNINFO="${next}"`);
  await shell.run(follow);
  await expect.poll(() => deletePlant(2), { timeout: 30_000 }).toBe(204);
  // The status is 400, because the plant does not exist.
  expect(await deletePlant(1)).toBe(400);
  await stopReplication(urlA, "standby_a");
  const [standbys = ""] = (await read(release)).split("\n");
  await shell.run(`STANDBYS="${standbys}"`);
  await expect.poll(() => deletePlant(3), { timeout: 30_000 }).toBe(204);
  await shell.run(follow);
  await shell.run(reset);
  const want = [{ synchronous_standby_names: "ANY 1 (standby_a, standby_b)" }];
  await expect.poll(() => runSql(urlB, "SHOW synchronous_standby_names")).toMatchObject(want);
  expect(await deletePlant(4)).toBe(204);
  await shell.run(check);
});
