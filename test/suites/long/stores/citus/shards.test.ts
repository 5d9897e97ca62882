import { expect, test } from "vitest";
import { hashOf, Shards } from "../../../../../src/stores/citus/shards.ts";
import { runSql } from "../../../../support/plants/postgres-server.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

const hashMax = 2 ** 31 - 1;

test("hashOf returns the hash that the server uses for distributed tables", async () => {
  const ids = [0n, 1n, -1n, 42n, 2n ** 31n, 2n ** 32n, -(2n ** 32n), 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
  const url = await server.createSchema();
  const rows = await runSql(url, `SELECT hashint8(id) AS hash FROM unnest('{${ids.join()}}'::bigint[]) AS id`);
  expect(ids.map(hashOf)).toEqual(rows.map(({ hash }) => hash));
});

test("workerOf returns the worker with the shard that contains the hash", () => {
  const hashes = [0n, 1n, 2n, 3n].map((id) => ({ id, hash: hashOf(id) })).toSorted((a, b) => a.hash - b.hash);
  const shards = new Shards(
    hashes.map(({ hash }) => hash),
    [0, 1, 0, 2],
  );
  expect(hashes.map(({ id }) => shards.workerOf(id))).toEqual([0, 1, 0, 2]);
});

test("findOneOfEach returns one plant for each worker", () => {
  const shards = new Shards([-(2 ** 30), 0, 2 ** 30, hashMax], [0, 1, 2, 0]);
  const workers = shards.findOneOfEach().map((id) => shards.workerOf(id));
  expect(workers.toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
  const [last = 0n] = shards.findOneOfEach().slice(-1);
  expect(last).toBeLessThan(20n);
});

test("oneOfEach omits a worker that stores a single hash", () => {
  const hash = hashOf(2n ** 31n);
  const shards = new Shards([hash - 1, hash, hashMax], [0, 1, 0]);
  expect(shards.findOneOfEach()).toEqual([0n]);
  expect(shards.workerOf(2n ** 31n)).toBe(1);
});
