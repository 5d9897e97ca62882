import { expect, test } from "vitest";
import { hashOf, shardOf } from "../../../../../src/stores/citus/citus-tables.ts";
import { runSql, startPostgresOfFile } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

test("hashOf returns the hash that the server uses for distributed tables", async () => {
  const ids = [0n, 1n, -1n, 42n, 2n ** 31n, 2n ** 32n, -(2n ** 32n), 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
  const url = await server.createSchema();
  const rows = await runSql(url, `SELECT hashint8(id) AS hash FROM unnest('{${ids.join()}}'::bigint[]) AS id`);
  expect(ids.map(hashOf)).toEqual(rows.map(({ hash }) => hash));
});

test("shardOf returns the shard that contains the hash", () => {
  const hashes = [0n, 1n, 2n, 3n].map((id) => ({ id, maxHash: hashOf(id) })).toSorted((a, b) => a.maxHash - b.maxHash);
  const shards = hashes.map(({ maxHash }) => ({ maxHash, worker: 0 }));
  expect(hashes.map(({ id }) => shardOf(shards, id))).toEqual([0, 1, 2, 3]);
});
