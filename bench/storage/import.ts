/**
 * Measures what an import into PostgreSQL costs the client and the server, in turns with psql's `\copy`. `npx node
 * bench/storage/import.ts [--ids 500000] [--records 0] [--rounds 3]`
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { migratePlants } from "../../src/stores/index.ts";
import { configOf, runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { median } from "../../protoport/bench/summary.ts";
import { cpuUsOfEnded, cpuUsOfServer } from "./cpu.ts";

const { ids, records, rounds } = numberFlags({ ids: 500_000, records: 0, rounds: 3 });
const command = fileURLToPath(new URL("../../src/command/main.ts", import.meta.url));

using folder = createTempFolder();
const file = folder.file("ids.txt");
writeFileSync(file, Array.from({ length: ids }, (_, i) => `${i + 1}\n`).join(""));
// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });

const ways = { "plantstore import": importIds, "psql \\copy": copyIds };
console.log(`${ids} ids, ${records} existing deletion records; medians, CPU in µs per id\n`);
console.log("                    client  server");
const results = new Map<string, { readonly client: number; readonly server: number }[]>();
for (let round = 0; round < rounds; round++) {
  for (const [name, run] of Object.entries(ways)) results.set(name, [...(results.get(name) ?? []), await measure(run)]);
}
for (const [name, turns] of results) {
  const [client, server] = [turns.map((turn) => turn.client), turns.map((turn) => turn.server)];
  console.log(`${name.padEnd(18)}${median(client).toFixed(2).padStart(8)}${median(server).toFixed(2).padStart(8)}`);
}

async function measure(run: (url: string) => void): Promise<{ readonly client: number; readonly server: number }> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, subject, request_id, batch)
     SELECT -id, '', '', gen_random_uuid() FROM generate_series(1, ${records}) AS id`,
  );
  await runSql(url, "VACUUM ANALYZE deletions");
  await runSql(url, "CHECKPOINT");
  const [client, server] = [cpuUsOfEnded(), await cpuUsOfServer(postgres)];
  run(url);
  const used = { client: (cpuUsOfEnded() - client) / ids, server: ((await cpuUsOfServer(postgres)) - server) / ids };
  await runSql(url, "DROP TABLE plants");
  return used;
}

function importIds(url: string): void {
  execFileSync(process.execPath, [command, "import", file], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: "ignore",
  });
}

function copyIds(url: string): void {
  const { host, port, user, database, options } = configOf(url);
  const where = ["-h", String(host), "-p", String(port), "-U", String(user), "-d", String(database)];
  const env = { ...process.env, PGOPTIONS: options };
  execFileSync("psql", [...where, "-c", `\\copy plants from '${file}'`], { env, stdio: "ignore" });
}
