import { expect, test } from "vitest";
import { hashOf, shardOf, toShards } from "../../../../../src/stores/citus/shards.ts";
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

const [lowest, highest] = [-(2 ** 31), 2 ** 31 - 1];

test("toShards accepts one shard, several shards, and replicas of a shard", () => {
  expect(toShards([[lowest, highest, 2]])).toEqual([{ maxHash: highest, worker: 2 }]);
  const rows = [
    [lowest, -1, 1],
    [lowest, -1, 2],
    [0, highest, 2],
  ];
  expect(toShards(rows)).toEqual(rows.map(([, maxHash, worker]) => ({ maxHash, worker })));
});

test.each(
  // oxfmt-ignore
  [
    { name: "no shard", rows: [] },
    { name: "no first shard", rows: [[0, highest, 1]] },
    { name: "no shard in the middle", rows: [
        [lowest, -1, 1],
        [9, highest, 1],
      ] },
    { name: "no last shard", rows: [
        [lowest, -1, 1],
        [0, highest - 1, 1],
      ] },
  ],
)("toShards refuses a list with $name", ({ rows }) => {
  expect(() => toShards(rows)).toThrow(/^a shard of the table plants has no worker: /);
});
