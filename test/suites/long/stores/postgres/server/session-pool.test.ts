import { expect, test } from "vitest";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { SessionPool } from "../../../../../../src/stores/postgres/server/session-pool.ts";
import { startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

test("a session pool runs reads in call order, even after a failure", async () => {
  const url = await server.createPlants([1n]);
  let opened = 0;
  const pool = new SessionPool(() => {
    opened++;
    return new Session(readServerUrl(url));
  }, 2);
  const order: number[] = [];
  const read = async (i: number): Promise<boolean> =>
    await pool.use(performance.now() + 10_000, async (session) => {
      order.push(i);
      if (i === 7) throw new Error("one read fails");
      return (await session.query(`SELECT FROM plants WHERE id = ${i % 2}`)).length > 0;
    });
  const reads = await Promise.allSettled(Array.from({ length: 200 }, (_, i) => read(i)));
  expect(opened).toBe(2);
  expect(pool.connections).toEqual({ used: 0, idle: 2 });
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(reads.map((one) => (one.status === "fulfilled" ? one.value : "failed"))).toEqual(
    Array.from({ length: 200 }, (_, i) => (i === 7 ? "failed" : i % 2 === 1)),
  );
  await pool.close();
});
