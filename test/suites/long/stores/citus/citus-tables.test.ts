import { expect, test } from "vitest";
import { hashOf, shardOf, toShards } from "../../../../../src/stores/citus/citus-tables.ts";
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

const [first, last] = [-(2 ** 31), 2 ** 31 - 1];

test("toShards returns shards that contain every hash", () => {
  const rows = [
    [first, -1, 2],
    [0, last, 3],
  ];
  expect(toShards(rows)).toEqual([
    { maxHash: -1, worker: 2 },
    { maxHash: last, worker: 3 },
  ]);
});

// oxfmt-ignore
test.each([
  { name: "no shard", rows: [] },
  { name: "a gap before the first shard", rows: [[first + 1, last, 2]] },
  { name: "a gap between two shards", rows: [[first, -1, 2], [1, last, 3]] },
  { name: "a gap after the last shard", rows: [[first, last - 1, 2]] },
])("toShards refuses $name", ({ rows }) => {
  expect(() => toShards(rows)).toThrow(/^a shard of the table plants has no worker/);
});
