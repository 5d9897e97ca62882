import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { postgresBinaries } from "../../support/plants/postgres-binaries.ts";
import { serverOwner } from "../../support/plants/postgres-server.ts";
import { openProduction, type Production, productionBlocks } from "./production.ts";

// Runs the commands under "Recover PostgreSQL" in docs/how-to/runbooks/tasks.md, and lists undone deletions.

const [archive = "", backUp = "", archiveRest = "", recover = "", compare = ""] = blocksRunBy(
  "test/suites/prometheus/recovery.test.ts",
).map(({ text }) => text);

const listUndone = blocksRunBy("test/suites/prometheus/runbooks.test.ts").find(
  ({ section }) => section === "Repeat undone deletions",
)?.text;

/** A command that waits for a server that is down, or for a standby, exceeds this timeout. */
const commandTimeoutMs = 60_000;

type RunAsPostgres = (commands: string, more?: Readonly<Record<string, string>>) => string;

/** Returns a function that runs commands as the PostgreSQL user, with a free port for the recovered server. */
function shellOfPostgres({ socketFolder }: Production["postgres"], port: string, recoveredPort: number): RunAsPostgres {
  // A cp that is as slow as a remote archive, so that recovery lasts after the server has started.
  const tools = join(socketFolder, "tools");
  mkdirSync(tools);
  writeFileSync(
    join(tools, "cp"),
    '#!/bin/sh\ncase $1 in */wal/*) [ ! -f "$1" ] || sleep 0.5 ;; esac\nexec /bin/cp "$@"\n',
    { mode: 0o755 },
  );
  // oxfmt-ignore
  const environment = {
    PATH: [tools, postgresBinaries(), process.env["PATH"]].join(delimiter), PGHOST: socketFolder, PGPORT: port,
    PGUSER: "tester", PGDATABASE: "postgres", BACKUP: join(socketFolder, "backup"),
  };
  return (commands, more = {}) => {
    const here = commands
      .replace('"-p 5433"', `"-p ${recoveredPort} -k ${socketFolder}"`)
      .replaceAll("-p 5433", `-p ${recoveredPort}`);
    const options = { ...serverOwner(), cwd: socketFolder, env: { ...environment, ...more } };
    const script = { input: here, encoding: "utf8", timeout: commandTimeoutMs } as const;
    return execFileSync("bash", ["-e", "-s"], { ...options, ...script }).trim();
  };
}

test('the commands under "Recover PostgreSQL" restore the state at a given moment', { timeout: 300_000 }, async () => {
  await using production = await openProduction();
  const { run, read, postgres } = production;
  const port = await freePort();
  const runAsPostgres = shellOfPostgres(postgres, (await read("echo $PGPORT")).trim(), port);
  const [createDatabase, writeSettings, createTables, createToken, start, deletePlant] = productionBlocks();
  for (const block of [createDatabase, writeSettings, createTables, createToken]) await run(block);
  runAsPostgres(archive);
  await postgres.stop("fast");
  await postgres.start();
  // Only the backups have this setting. The running server, which has no standby, does not read the file again.
  appendFileSync(join(postgres.socketFolder, "data/postgresql.conf"), "synchronous_standby_names = 'ANY 1 (a, b)'\n");
  await run(start);
  runAsPostgres(`date() { command date --date=yesterday "$@"; }\n${backUp}`);
  runAsPostgres(backUp);
  const bases = runAsPostgres('ls -d "$BACKUP"/base-*').split("\n");
  const moments: string[] = [];
  for (const id of [7, 8, 9]) {
    await run(deletePlant?.replace("plants/7", `plants/${id}`));
    moments.push(runAsPostgres('psql -At -c "SELECT now()"'));
  }
  await run('kill -TERM "$PID"\nwait "$PID"');
  runAsPostgres(archiveRest);
  await postgres.stop("immediate");

  // The third recovery has no target time, as after losing the data directory.
  for (const [index, base] of [...bases, bases[1] ?? ""].entries()) {
    const restored = { RESTORED: join(postgres.socketFolder, `restored-${index}`) };
    const commands = index < 2 ? recover : recover.replace(/^recovery_target_time .*\n/m, "");
    expect(runAsPostgres(commands, { ...restored, BASE: base, MOMENT: moments[index] ?? "" })).toMatch(/^ f$/m);
    try {
      await run(`RECOVERED_URL='postgres://plantstore@/plants?host=${postgres.socketFolder}&port=${port}'`);
      const printed = await read(compare);
      expect(printed).toMatch(new RegExp(`the configuration is valid[^]*^${999 - index}$`, "m"));
      expect(printed.match(/^\{"plantId":.*/gm) ?? printed).toHaveLength(1 + index);
      await run(`export DATABASE_URL=$RECOVERED_URL\n${listUndone}`);
      expect((await read("cat undone")).split("\n").filter(Boolean)).toEqual(["8", "9"].slice(index));
      const sql = ["CREATE TABLE written ()", "SHOW archive_mode", "SELECT pg_switch_wal()"];
      expect(runAsPostgres(`psql -p 5433 -At ${sql.map((each) => `-c "${each}"`).join(" ")}`)).toMatch(/^off$/m);
      // Archives the timeline's files, as another server would.
      runAsPostgres('cp "$RESTORED"/pg_wal/0000000[2-4]* "$BACKUP/wal"', restored);
    } finally {
      runAsPostgres('pg_ctl -D "$RESTORED" -m immediate stop', restored);
    }
  }
  expect(bases).toHaveLength(2);
});
