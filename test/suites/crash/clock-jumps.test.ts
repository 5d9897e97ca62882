import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePlants, openPlantStore } from "../../../src/stores/index.ts";
import { deleteCall, runSql, startPostgres } from "../../support/plants/index.ts";
import { createMissingStore } from "../../support/plants/sqlite-file.ts";
import { closing, type CommandLine, createTempFolder, type TempFolder } from "@protoport/testing/process";
import { baseUrlOf, startCommandLine } from "../../support/process/index.ts";

// libfaketime makes a server's clock jump. Only the time of day jumps, and the monotonic clock does not, as when a
// machine's clock is corrected.

const libfaketime = execFileSync("faketime", ["-f", "+0", "printenv", "LD_PRELOAD"], { encoding: "utf8" }).trim();
const dayMs = 86_400_000;
const procedure = "plantstore.v1.PlantService/DeletePlant";

describe("a server whose clock jumps", () => {
  let folder: TempFolder;
  let server: CommandLine;
  let baseUrl: string;
  let tokens: Readonly<Record<"lasting" | "brief", string>>;

  beforeAll(async () => {
    folder = createTempFolder();
    const expiry = new Date(Date.now() + dayMs).toISOString();
    tokens = { lasting: await createToken("lasting"), brief: await createToken("brief", "--expires", expiry) };
    jump("+0");
    createMissingStore(folder.file("plants.db"));
    // oxfmt-ignore
    server = startCommandLine(["serve"], folder.path, {
      LD_PRELOAD: libfaketime, FAKETIME_TIMESTAMP_FILE: folder.file("clock"), FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1", PORT: "0", DATABASE_URL: "sqlite:plants.db",
      PLANTSTORE_TOKEN_HASHES_FILE: "tokens", PLANTSTORE_RATE_PER_PRINCIPAL: "1000", PLANTSTORE_DRAIN_DELAY_MS: "0",
    });
    baseUrl = await baseUrlOf(server);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  async function createToken(name: string, ...flags: readonly string[]): Promise<string> {
    await using command = startCommandLine(["token", "create", name, "--file", "tokens", ...flags], folder.path);
    expect(await command.end()).toBe(0);
    return /plantstore_\S+/.exec(command.stdout())?.[0] ?? "";
  }

  function jump(offset: string): void {
    writeFileSync(folder.file("clock"), `${offset}\n`);
  }

  /** Returns the code of a deletion over Connect. The long deadline passes only if a clock jump affects it. */
  async function codeOf(token: string): Promise<unknown> {
    const ofConnect = { "content-type": "application/json", "connect-timeout-ms": "20000" };
    const headers = { authorization: `Bearer ${token}`, ...ofConnect, connection: "close" };
    const answer = await fetch(`${baseUrl}/${procedure}`, { method: "POST", headers, body: '{"id":"1"}' });
    return JSON.parse(await answer.text()).code;
  }

  test.each([
    { offset: "+0", brief: "not_found" },
    { offset: "+2d", brief: "unauthenticated" },
    { offset: "+4000d", brief: "unauthenticated" },
    { offset: "-400d", brief: "not_found" },
    { offset: "+0", brief: "not_found" },
  ])("to $offset returns $brief for a one-day token, and keeps its deadlines", async ({ offset, brief }) => {
    jump(offset);
    expect(await codeOf(tokens.brief)).toBe(brief);
    for (let calls = 0; calls < 20; calls++) expect(await codeOf(tokens.lasting)).toBe("not_found");
    expect((await fetch(`${baseUrl}/readyz`, { headers: { connection: "close" } })).status).toBe(200);
  });

  test("drains as usual when the clock jumps during the drain", async () => {
    // A drain waits for a connection without requests, but not for long.
    const idle = connect(Number(new URL(baseUrl).port), "127.0.0.1").on("error", () => {});
    idle.write("GET /livez HTTP/1.1\r\nhost: plants\r\n\r\n");
    await once(idle, "data");
    server.process.kill("SIGTERM");
    await server.find(/"msg":"draining"/);
    jump("-400d");
    expect(await server.end()).toBe(0);
    idle.destroy();
    expect(server.stderr()).not.toMatch(/"level":"(?:error|fatal)"/);
  });
});

// The database server dates records. With its own clock, the store would drop too much or too little.
test.each(["+100d", "-100d"])("with a database clock at %s, a store drops records by that clock", async (offset) => {
  const environment = { LD_PRELOAD: libfaketime, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
  await using postgres = await startPostgres([], { environment });
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const [clock] = await runSql(url, "SELECT now()");
  expect(Math.round((Number(clock?.["now"]) - Date.now()) / dayMs)).toBe(Number.parseInt(offset, 10));
  const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
     SELECT days, now() - days * interval '1 day', '', '', gen_random_uuid() FROM unnest(ARRAY[0, 89, 91]) AS days`;
  await runSql(url, sql);
  await using _ = closing(await openPlantStore({ kind: "postgres", url }));
  const left = "SELECT array_agg(plant_id ORDER BY plant_id) AS days FROM deletions";
  await expect.poll(() => runSql(url, left)).toEqual([{ days: ["0", "89"] }]);
});

test("no deletion record is lost when a database clock jumps across days", async () => {
  using folder = createTempFolder();
  // The server runs as another user.
  chmodSync(folder.path, 0o755);
  const jump = (offset: string): void => writeFileSync(folder.file("clock"), `${offset}\n`);
  jump("+0");
  await using postgres = await startPostgres([], {
    environment: {
      LD_PRELOAD: libfaketime,
      FAKETIME_TIMESTAMP_FILE: folder.file("clock"),
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
  });
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(url, "INSERT INTO plants SELECT generate_series(0, 10)");
  const store = await openPlantStore({ kind: "postgres", url });
  const keyed = deleteCall({ idempotencyKey: "once" });
  await expect(store.delete(0n, keyed)).resolves.toBe(true);
  const offsets = ["+0", "+1d", "+3d", "+4d", "+30d", "-1d", "-30d", "+0"];
  for (const [i, offset] of offsets.entries()) {
    jump(offset);
    await expect(store.delete(BigInt(i + 1), deleteCall())).resolves.toBe(true);
    await expect(store.delete(0n, keyed)).resolves.toBe(true);
    await expect(store.delete(10n, keyed)).rejects.toThrow(/idempotency/i);
  }
  await store.close();
  const sql = `SELECT round(extract(epoch FROM deleted_at - min(deleted_at) FILTER (WHERE plant_id = 0) OVER ()) / 86400)::text AS day
     FROM deletions ORDER BY plant_id`;
  expect((await runSql(url, sql)).map(({ day }) => day)).toEqual(["0", "0", "1", "3", "4", "30", "-1", "-30", "0"]);
  expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "9" }, { id: "10" }]);
});
