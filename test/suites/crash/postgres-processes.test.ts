import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { migratePlants } from "../../../src/stores/index.ts";
import { runSql, startPostgres } from "../../support/plants/postgres-server.ts";

const run = promisify(execFile);
const processes = 4;
const plants = 10_000;

test("several processes delete each plant exactly once", { timeout: 180_000 }, async () => {
  await using postgres = await startPostgres();
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${plants})`);
  const program = fileURLToPath(new URL("../../support/plants/delete-all.ts", import.meta.url));
  const outputs = await Promise.all(
    Array.from({ length: processes }, (_, seed) =>
      run(process.execPath, [program, url, String(plants), String(seed * 1_000)], { maxBuffer: 2 ** 24 }),
    ),
  );
  const deleted: string[] = outputs.flatMap(({ stdout }) => JSON.parse(stdout));
  expect(deleted).toHaveLength(plants);
  expect(new Set(deleted).size).toBe(plants);
  expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "0" }]);
});
