import { expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { runSql, startPostgres, startStandby } from "../../support/plants/postgres-server.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { startCommandLine } from "../../support/process/command-line.ts";
import { openShell } from "../../support/process/shell.ts";
import { installCommands } from "./production.ts";

// Runs the commands of docs/how-to/runbooks/failover.md while a server uses the primary.

const [promote = "", check = "", reset = ""] = blocksRunBy("test/suites/prometheus/failover.test.ts").map(
  ({ text }) => text,
);
const token = "token-of-the-failover-test";

test(
  "the commands of docs/how-to/runbooks/failover.md make a standby serve deletions",
  { timeout: 120_000 },
  async () => {
    using folder = createTempFolder();
    await using primary = await startPostgres();
    const url = await primary.createPlants([1n, 2n]);
    await using standby = await startStandby(primary, "standby_a");
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'standby_a'");
    await runSql(url, "SELECT pg_reload_conf()");
    const newUrl = url.replaceAll(primary.socketFolder, standby.socketFolder);
    const bothUrl = url.replaceAll(primary.socketFolder, `${primary.socketFolder},${standby.socketFolder}`);
    const settings = { PORT: "0", PLANTSTORE_TOKENS: token, DATABASE_URL: bothUrl };
    await using server = startCommandLine(["serve"], folder.path, settings);
    const [, port = ""] = await server.find(/"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/);
    const deletePlant = async (id: number): Promise<number> => {
      const header = { authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${port}/plants/${id}`, { method: "DELETE", headers: header })).status;
    };
    expect(await deletePlant(1)).toBe(204);

    await primary.stop("kill");
    await using shell = openShell(folder.path, {
      PATH: installCommands(folder),
      STANDBY: newUrl.replace(/&options.*/, ""),
      DATABASE_URL: bothUrl,
    });
    await shell.run(promote);
    await shell.run(check);
    await shell.run(reset);
    await expect.poll(() => deletePlant(2), { timeout: 30_000 }).toBe(204);
  },
);
