import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { createPlantsFor, deleteCall, errorMessage, openClient, type PostgresProxy, runSql, startPostgresOfFile,
  startPostgresProxy } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();
const timeouts = { lockTimeoutMs: 100, statementTimeoutMs: 5_000, responseTimeoutMs: 7_000 };
type Pooler = PostgresProxy & { readonly refusals: number };

async function startRefusing(refuses: (startup: Buffer) => boolean, sqlState: string): Promise<Pooler> {
  let refusals = 0;
  const proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.once("data", (data) => {
      if (!refuses(Buffer.from(data))) {
        upstream.write(data);
        return void client.pipe(upstream).pipe(client);
      }
      refusals++;
      client.end(errorMessage(`SFATAL\0C${sqlState}\0Mno options here\0\0`));
    });
  });
  return {
    ...proxy,
    get refusals() {
      return refusals;
    },
  };
}

const hasOptions = (startup: Buffer): boolean => startup.includes("options\0");

/** Creates a store with its role's search_path, and returns the direct URL and the URL through the pooler. */
async function createRoleStore(role: string, pooler: PostgresProxy): Promise<{ direct: string; pooled: string }> {
  const direct = await createPlantsFor(server, role, [1n, 2n]);
  const schema = /plants_\d+/.exec(direct)?.[0];
  await runSql(direct, `ALTER ROLE ${role} SET search_path = ${schema}`);
  const [withoutOptions = ""] = direct.split("&options=");
  return { direct, pooled: withoutOptions.replace(server.socketFolder, pooler.socketFolder) };
}

describe("start-up parameters", () => {
  test.each([
    // The response of PgBouncer.
    { name: "protocol_violation", sqlState: "08P01" },
    // The response of Amazon RDS Proxy.
    { name: "feature_not_supported", sqlState: "0A000" },
    { name: "undefined_object", sqlState: "42704" },
    { name: "invalid_parameter_value", sqlState: "22023" },
    { name: "insufficient_privilege", sqlState: "42501" },
    { name: "cant_change_runtime_param", sqlState: "55P02" },
  ])("are omitted after the error $name from the server", async ({ sqlState }) => {
    await using pooler = await startRefusing(hasOptions, sqlState);
    const { pooled } = await createRoleStore(`role_${sqlState.toLowerCase()}`, pooler);
    await using session = closing(new Session(readServerUrl(pooled), timeouts));
    for (const refusals of [1, 2]) {
      await expect(session.query("DELETE FROM plants RETURNING id")).resolves.toHaveLength(refusals === 1 ? 2 : 0);
      expect(pooler.refusals).toBe(refusals);
      session.discard();
    }
  });

  test.each([true, false])(
    "a locked plant delays no other, with start-up parameters refused: %s",
    async (isRefused) => {
      await using pooler = await startRefusing((startup) => isRefused && hasOptions(startup), "0A000");
      const { direct, pooled } = await createRoleStore(`hurried_${isRefused}`, pooler);
      const references = "plant bigint REFERENCES plants ON DELETE CASCADE";
      await runSql(direct, `CREATE TABLE beds (${references}); INSERT INTO beds VALUES (1)`);
      const locking = await openClient(direct, "BEGIN; SELECT FROM beds FOR UPDATE");
      await using store = closing(await openPostgresStore({ url: pooled }));
      const [locked, other] = [1n, 2n].map((id) => store.delete(id, deleteCall()));
      await expect(other).resolves.toBe(true);
      await locking.end();
      await expect(locked).resolves.toBe(true);
    },
  );

  test.each(["08P01", "0A000"])("from the URL are reported if a pooler refuses them (%s)", async (sqlState) => {
    await using pooler = await startRefusing(hasOptions, sqlState);
    await expect(
      openPostgresStore({ url: (await server.createPlants([1n])).replace(server.socketFolder, pooler.socketFolder) }),
    ).rejects.toThrow("the options in the database URL set search_path, but the server did not get this setting");
    expect(pooler.refusals).toBe(2);
  });

  test.each(["28P01", "3D000", "53300"])(
    'are sent once if the server refuses the connection with "%s"',
    async (state) => {
      await using pooler = await startRefusing(() => true, state);
      const [url = ""] = (await server.createPlants())
        .replace(server.socketFolder, pooler.socketFolder)
        .split("&options=");
      const session = new Session(readServerUrl(url), timeouts);
      await expect(session.connect()).rejects.toMatchObject({ code: state });
      await session.close();
      expect(pooler.refusals).toBe(1);
    },
  );
});
