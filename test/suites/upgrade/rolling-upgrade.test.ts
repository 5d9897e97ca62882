import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { type PostgresServer, startPostgres } from "../../support/plants/postgres-server.ts";
import { compileCache, createTempFolder, freePort, runProgram, type TempFolder } from "@protoport/testing/process";
import { startBalancer } from "../../../protoport/testing/src/http/balancer.ts";
import { openGrpcCaller, openRestCaller, startLoad } from "../../support/restart/load.ts";
import { makeReleases, type Releases } from "./next-release.ts";
import { openShell, type Shell } from "../../support/process/shell.ts";

// Runs the commands under "Upgrade" in docs/how-to/operations.md in their order.
const [expand = "", replace = ""] = blocksRunBy("test/suites/upgrade/rolling-upgrade.test.ts").map(({ text }) => text);
const goBack = replace.replace("$NEW", "$OLD");
const token = "token-of-the-upgrade-test";
/** More plants than any run deletes. */
const plants = 200_000;
/** How many responses there are between two steps, so that each step happens under load. */
const callsPerStep = 100;
const timeout = 300_000;
const tooOld =
  'its schema has version 1, but this release supports versions 2 and 3: run "plantstore migrate" of this release';

let postgres: PostgresServer;
let releases: Releases;
beforeAll(async () => {
  postgres = await startPostgres();
  releases = makeReleases();
}, timeout);
afterAll(async () => {
  releases[Symbol.dispose]();
  await postgres[Symbol.asyncDispose]();
});

async function run(command: string, args: readonly string[], environment: Record<string, string>): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(command, args, { environment });
  expect(exitCode, stderr).toBe(0);
  return stdout + stderr;
}

const stores: readonly { name: string; urlIn: (folder: TempFolder) => Promise<string> }[] = [
  { name: "SQLite", urlIn: async (folder) => `sqlite:${folder.file("plants.db")}` },
  { name: "PostgreSQL", urlIn: () => postgres.createSchema() },
];

describe.each(stores)("two servers on $name", ({ urlIn }) => {
  test("are upgraded and downgraded one by one without failed calls", { timeout }, async () => {
    using folder = createTempFolder();
    const environment = {
      ...compileCache,
      DATABASE_URL: await urlIn(folder),
      PLANTSTORE_TOKENS: token,
      // The delay is ten times as long as the balancer takes to detect the drain.
      PLANTSTORE_DRAIN_DELAY_MS: "500",
      OLD: releases.old,
      NEW: releases.next,
    };
    const ids = Array.from({ length: plants }, (_, i) => i + 1).join("\n");
    await using operator = openShell(folder.path, environment);
    await operator.run(`"$OLD" migrate\n"$OLD" import <<'EOF'\n${ids}\nEOF`);
    const ports = [await freePort(), await freePort()];
    await using machines = new AsyncDisposableStack();
    const shells = ports.map((port) => machines.use(openShell(folder.path, { ...environment, PORT: String(port) })));
    for (const shell of shells) await shell.run('"$OLD" serve &\nPID=$!');
    await using balancer = await startBalancer(ports);
    const areReady = (): readonly boolean[] => ports.map((port) => balancer.isReady(port));
    await expect.poll(areReady).toEqual([true, true]);
    const callers = [openRestCaller, openRestCaller, openGrpcCaller, openGrpcCaller];
    const load = startLoad(callers.map((open) => open(balancer.address, token)));
    const underLoad = async (shell: Shell, commands: string): Promise<void> => {
      await shell.run(commands);
      await expect.poll(areReady).toEqual([true, true]);
      const before = load.completed();
      await expect.poll(load.completed).toBeGreaterThan(before + callsPerStep);
    };

    // The new release rejects the old one's schema, which only `migrate` changes.
    for (const command of ["check", "export", "serve"]) {
      const { exitCode, stderr } = await runProgram(releases.next, [command], { environment });
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(tooOld) });
    }
    await underLoad(operator, expand);
    expect(operator.printed()).toMatch(/^migrated the schema from version 1 to version 2 in \d+\.\d s$/m);
    // Runs each of the old release's commands on the new schema.
    await run(releases.old, ["check"], environment);
    await run(releases.old, ["deletions", "--plant", "1"], environment);
    await run(releases.old, ["export"], environment);
    const found = await run(releases.old, ["migrate"], environment);
    expect(found).toMatch(/^nothing to migrate: this release supports version 2 of the schema$/m);
    for (const shell of shells) await underLoad(shell, replace);
    for (const shell of shells) await underLoad(shell, goBack);
    // Upgrades again, with the schema already migrated.
    await underLoad(operator, expand);
    for (const shell of shells) await underLoad(shell, replace);
    const { failed, completed, deleted, unprocessed } = await load.stop();
    expect(failed).toEqual([]);
    // All plants existed, and each was deleted once.
    expect(deleted).toBe(completed);
    expect((await run(releases.next, ["deletions"], environment)).trimEnd().split("\n")).toHaveLength(deleted);
    const steps = 2 + 3 * shells.length;
    expect(completed).toBeGreaterThan(steps * callsPerStep);
    // Each restart may race with one call on each gRPC connection.
    expect(unprocessed).toBeLessThanOrEqual(2 * 3 * shells.length);
  });
});
