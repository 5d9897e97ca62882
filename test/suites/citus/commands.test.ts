import { Code } from "@connectrpc/connect";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { runSql } from "../../support/plants/postgres-server.ts";
import { baseUrlOf, runCommand, serve, serveToken } from "../../support/process/index.ts";
import { createTempFolder } from "@protoport/testing/process";
import { startCitus } from "./citus-cluster.ts";

let environment: { readonly DATABASE_URL: string };
const cluster = shared(() => startCitus());
beforeAll(async () => {
  environment = { DATABASE_URL: await cluster.createSchema() };
  await runCommand(["migrate"], environment);
  const { out } = await runCommand(["import"], environment, Array.from({ length: 40 }, (_, i) => i + 1).join("\n"));
  expect(out).toEqual(["40 added, 0 already present, 0 skipped (deleted before)"]);
});

async function statusOf(baseUrl: string, path: string): Promise<unknown> {
  const response = await fetch(`${baseUrl}${path}`);
  return { httpStatus: response.status, body: await response.json() };
}

async function deletePlant(baseUrl: string, id: number, key?: string): Promise<readonly [number, unknown]> {
  const keyed = key === undefined ? {} : { "idempotency-key": `"${key}"` };
  const headers = { authorization: `Bearer ${serveToken}`, connection: "close", ...keyed };
  const response = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
  const text = await response.text();
  return [response.status, text === "" ? undefined : JSON.parse(text).error];
}

const deleted = [204, undefined] as const;
const unavailable = [400, Code.Unavailable] as const;

async function plantsByWorker(): Promise<readonly (readonly number[])[]> {
  const sql = `SELECT nodeport, array_agg(id ORDER BY id)::text[] AS ids FROM plants
     JOIN citus_shards ON shardid = get_shard_id_for_distribution_column('plants', id) GROUP BY 1`;
  const rows = await runSql(environment.DATABASE_URL, sql);
  const idsOf = (port: number): unknown => rows.find(({ nodeport }) => nodeport === port)?.["ids"];
  return cluster.workers.map(({ port }) => [idsOf(port)].flat().map(Number));
}

test("a server is not ready while its coordinator is unavailable", async () => {
  using folder = createTempFolder();
  await using server = serve(folder, environment);
  const baseUrl = await baseUrlOf(server);
  const ofEach = (await plantsByWorker()).map((plants) => plants.at(-1) ?? 0);
  await cluster.coordinator.kill();
  expect(await Promise.all(ofEach.map((id) => deletePlant(baseUrl, id)))).toEqual([unavailable, unavailable]);
  await server.find(/"msg":"not ready"/);
  await cluster.coordinator.start();
  await server.find(/"msg":"ready again"/);
  expect(await Promise.all(ofEach.map((id) => deletePlant(baseUrl, id)))).toEqual([deleted, deleted]);
});

type Trouble = { name: string; begin: () => Promise<void> | void; end: () => Promise<void> | void };

const troubles: readonly Trouble[] = [
  { name: "without its synchronous standby", begin: () => setStandby("gone"), end: () => setStandby("") },
  { name: "that is frozen", begin: () => signal("SIGSTOP"), end: () => signal("SIGCONT") },
];

const timeout = 240_000;

test.each(troubles)("a worker $name affects only its own plants", { timeout }, async ({ begin, end }) => {
  using folder = createTempFolder();
  await using server = serve(folder, environment);
  const baseUrl = await baseUrlOf(server);
  const [[here = 0] = [], [waiting = 0] = []] = await plantsByWorker();
  onTestFinished(end);
  await begin();
  expect(await deletePlant(baseUrl, waiting)).toEqual(unavailable);
  expect(await deletePlant(baseUrl, here)).toEqual(deleted);
  expect(await statusOf(baseUrl, "/readyz")).toEqual({ httpStatus: 200, body: { status: "ready" } });
  expect(server.stderr()).not.toContain("not ready");
});

async function setStandby(name: string): Promise<void> {
  await cluster.workers[1]?.configure(`SET synchronous_standby_names = '${name}'`);
}

function signal(name: NodeJS.Signals): void {
  cluster.workers[1]?.signal(name);
}

test("a server started before its coordinator becomes ready despite a stopped worker", async () => {
  using folder = createTempFolder();
  const [, second] = cluster.workers;
  onTestFinished(() => second?.start());
  await Promise.all([cluster.coordinator.kill(), second?.kill()]);
  await using server = serve(folder, environment);
  await server.find(/"msg":"not ready"/);
  await cluster.coordinator.start();
  await server.find(/"msg":"ready again"/);
});

test("one unavailable worker affects only its plants, two make the server unready", { timeout }, async () => {
  using folder = createTempFolder();
  await using server = serve(folder, environment);
  const baseUrl = await baseUrlOf(server);
  const [[here = 0, there = 0, nowhere = 0] = [], [away = 0, back = 0] = []] = await plantsByWorker();
  const [first, second] = cluster.workers;
  await second?.kill();
  expect(await deletePlant(baseUrl, here)).toEqual(deleted);
  expect(await deletePlant(baseUrl, away)).toEqual(unavailable);
  expect(await statusOf(baseUrl, "/readyz")).toEqual({ httpStatus: 200, body: { status: "ready" } });
  const outcomes = [await deletePlant(baseUrl, there, "key"), await deletePlant(baseUrl, there, "key")];
  expect(outcomes).toEqual([deleted, deleted]);
  expect(server.stderr()).not.toContain("not ready");
  await first?.kill();
  await server.find(/"problem":"[^"]*remote node[^"]*","msg":"not ready"/);
  const body = { status: "not ready", obstacles: ["store"] };
  expect(await statusOf(baseUrl, "/readyz")).toEqual({ httpStatus: 503, body });
  await Promise.all([first?.start(), second?.start()]);
  await server.find(/"msg":"ready again"/);
  expect([await deletePlant(baseUrl, nowhere), await deletePlant(baseUrl, back)]).toEqual([deleted, deleted]);
});
