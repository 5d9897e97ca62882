import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { testSeed } from "../../../protoport/testing/src/test-seed.ts";
import { makeReleases } from "../upgrade/next-release.ts";
import { openCitusDatabase, openPostgresDatabase } from "./postgres-database.ts";
import { soakStore } from "./soak-store.ts";
import { openSqliteDatabase } from "./sqlite-database.ts";

// `npm run suite -- soak` runs a proxy in front of two plant store replicas, on SQLite, on PostgreSQL behind PgBouncer,
// and on Citus, one after the other. Servers, database and pooler are killed, frozen, reloaded, upgraded and
// downgraded, and other programs use the database. At the end, all calls are checked against the tables.
//
// `-- --seconds 3600` runs longer on each store, and `-- --store citus` runs a single one. `-- --seed 42` injects other
// faults, and `-- --logs FOLDER` keeps the logs. Citus is built once by `npx node test/suites/citus/build.ts`.

const stores = { sqlite: openSqliteDatabase, postgres: openPostgresDatabase, citus: openCitusDatabase };
/** Maximum number of problems to print for each store. */
const maxShown = 20;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "120" },
    seed: { type: "string", default: String(testSeed) },
    store: { type: "string" },
    logs: { type: "string" },
  },
});
const chosen = Object.entries(stores).filter(([name]) => name === (values.store ?? name));
if (chosen.length === 0) throw new RangeError(`--store must be sqlite, postgres or citus, got "${values.store}"`);

const folder = values.logs ?? mkdtempSync(join(tmpdir(), "plantstore-soak-"));
let failed = 0;
{
  using releases = makeReleases();
  for (const [name, open] of chosen) {
    const { summary, problems } = await soakStore(open, {
      seconds: Number(values.seconds),
      seed: Number(values.seed),
      folder: join(folder, name),
      releases,
    });
    for (const problem of problems.slice(0, maxShown)) process.stderr.write(`${name}: ${problem}\n`);
    for (const line of summary) process.stdout.write(`${name}: ${line}\n`);
    if (problems.length > 0) failed++;
  }
}
if (values.logs === undefined) rmSync(folder, { recursive: true });
const file = process.env["TEST_REPORT"];
const report = { numPassedTests: chosen.length - failed, numFailedTests: failed };
if (file !== undefined) writeFileSync(file, JSON.stringify(report));
process.exit(failed === 0 ? 0 : 1);
