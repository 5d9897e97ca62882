import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../../packages/testing/src/process/free-port.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { postgresBinaries } from "../../support/plants/postgres-binaries.ts";
import { serverOwner } from "../../support/plants/postgres-server.ts";
import { openProduction, productionBlocks } from "./production.ts";

// Runs the commands of docs/how-to/runbooks/recovery.md.

const [archive = "", backUp = "", recover = "", compare = ""] = blocksRunBy(
  "test/suites/prometheus/recovery.test.ts",
).map(({ text }) => text);

test("the commands of docs/how-to/runbooks/recovery.md return to a moment", { timeout: 300_000 }, async () => {
  await using production = await openProduction();
  const { run, read, postgres } = production;
  const port = await freePort();
  const environment = {
    PATH: [postgresBinaries(), process.env["PATH"]].join(delimiter),
    PGHOST: postgres.socketFolder,
    PGPORT: (await read("echo $PGPORT")).trim(),
    PGUSER: "tester",
    PGDATABASE: "postgres",
    BACKUP: join(postgres.socketFolder, "backup"),
    RESTORED: join(postgres.socketFolder, "restored"),
  };
  const runAsPostgres = (commands: string, more: Readonly<Record<string, string>> = {}): string => {
    const here = commands.replace("-p 5433", `-p ${port} -k ${postgres.socketFolder}`);
    const options = { ...serverOwner(), cwd: postgres.socketFolder, env: { ...environment, ...more } };
    return execFileSync("bash", ["-e", "-s"], { ...options, input: here, encoding: "utf8" });
  };
  const [createDatabase, writeSettings, createTables, createToken, start, deletePlant] = productionBlocks();
  for (const block of [createDatabase, writeSettings, createTables, createToken]) await run(block);

  runAsPostgres(archive);
  await postgres.stop("fast");
  await postgres.start();
  await run(start);
  runAsPostgres(backUp);
  await run(deletePlant);
  const moment = runAsPostgres('psql -At -c "SELECT now()"').trim();
  await run(deletePlant?.replace("plants/7", "plants/8"));
  await run('kill -TERM "$PID"\nwait "$PID"');

  runAsPostgres(recover, { MOMENT: moment });
  try {
    await run(`RECOVERED_URL='postgres://plantstore@/plants?host=${postgres.socketFolder}&port=${port}'`);
    const printed = await read(compare);
    expect(printed).toMatch(/the configuration is valid[^]*^999$/m);
    expect(printed.match(/^\{"plantId":.*/gm) ?? printed).toHaveLength(1);
  } finally {
    runAsPostgres('pg_ctl -D "$RESTORED" -m immediate stop');
  }
});
