import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PostgresServer, runSql, startPostgres } from "../../support/plants/postgres-server.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { createMissingStore } from "../../support/plants/sqlite-file.ts";
// oxfmt-ignore
import { type CommandLine, compileCache, createTempFolder, projectFolder, startProgram, type TempFolder
} from "@protoport/testing/process";
import { startCommandLine } from "../../support/process/command-line.ts";
// oxfmt-ignore
import { type Prometheus, type QueryResponse, startPrometheus, withShortTimes
} from "../../../protoport/testing/src/telemetry/prometheus.ts";

// A real Prometheus with the files in deploy/prometheus, which scrapes a server under load.

/** The number of alerts in deploy/prometheus/alerts.yml. */
const alerts = 24;

const token = "token-of-the-prometheus-test";

// What the tests use from Prometheus' responses and a dashboard.

type RulesAnswer = { data: { groups: readonly { rules: readonly { health: string; lastError?: string }[] }[] } };
type Dashboard = { readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[] };

async function promtool(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  await using tool = startProgram("promtool", args, import.meta.dirname);
  return { code: await tool.end(), output: tool.stdout() + tool.stderr() };
}

const configurations = ["deploy/prometheus/prometheus.yml", "protoport/deploy/prometheus.yml"];
test.each(configurations)("promtool finds no problems in %s and its rules", async (name) => {
  const { code, output } = await promtool("check", "config", join(projectFolder, name));
  const want = { code: 0, output: expect.stringContaining(`SUCCESS: ${alerts} rules found`) };
  expect({ code, output }).toMatchObject(want);
});

test("promtool's tests for the alert rules pass", async () =>
  expect(await promtool("test", "rules", "alerts-test.yml")).toMatchObject({ code: 0 }));

// oxfmt-ignore
const serving = {
  PORT: "0", PLANTSTORE_TOKENS: token, PLANTSTORE_DRAIN_DELAY_MS: "0", PLANTSTORE_ADMIN_ADDRESS: "0", LOG_LEVEL: "info",
  PLANTSTORE_AUDIT: "by-level",
};

async function addressesOf(server: CommandLine): Promise<{ calls: string; metrics: string }> {
  const [, admin = ""] = await server.find(/"port":(\d+),"msg":"serving metrics"/);
  const [, port = ""] = await server.find(/"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/);
  return { calls: `127.0.0.1:${port}`, metrics: `127.0.0.1:${admin}` };
}

/** Deletes one plant after the other over REST until a signal is aborted. */
async function deletePlants(at: string, signal: AbortSignal, tokenFor: (id: number) => string): Promise<void> {
  for (let id = 1; !signal.aborted; id++) {
    const request = { method: "DELETE", headers: { authorization: `Bearer ${tokenFor(id)}` } };
    await (await fetch(`http://${at}/plants/${id}`, request)).text();
  }
}

describe("a Prometheus server", () => {
  let folder: TempFolder;
  let server: CommandLine;
  let prometheus: Prometheus;
  const end = new AbortController();
  let load: Promise<void>;

  beforeAll(async () => {
    folder = createTempFolder();
    createMissingStore(folder.file("plants.db"));
    server = startCommandLine(["serve"], folder.path, { ...serving, DATABASE_URL: "sqlite:plants.db" });
    const { calls, metrics } = await addressesOf(server);
    load = deletePlants(calls, end.signal, (id) => (id % 5 === 0 ? "nobody-knows-this-one" : token));
    prometheus = await startPrometheus([metrics]);
  });
  afterAll(async () => {
    end.abort();
    await load;
    await prometheus[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test("scrapes the server, and gets its calls' metrics", async () => {
    await expect.poll(() => prometheus.valueOf('up{job="plantstore"}')).toBe(1);
    await expect
      .poll(() => prometheus.valueOf("sum(rate(http_server_request_duration_seconds_count[10s]))"))
      .toBeGreaterThan(1);
    await expect
      .poll(() => prometheus.valueOf('sum(rate(gateway_refusals_total{kind="invalid"}[10s]))'))
      .toBeGreaterThan(0);
    await expect.poll(() => prometheus.valueOf("sum(rate(plantstore_delete_batch_size_sum[10s]))")).toBeGreaterThan(0);
  });

  test("evaluates all rules without firing an alert", async () => {
    const healths = async (): Promise<string[]> => {
      const { data } = await prometheus.ask<RulesAnswer>("/api/v1/rules");
      return data.groups.flatMap(({ rules }) => rules.map(({ health, lastError }) => lastError ?? health));
    };
    await expect.poll(healths).toEqual(Array(alerts).fill("ok"));
    expect(await prometheus.firing()).toEqual([]);
  });

  test("returns a ratio between 0 and 1 for each documented objective query", async () => {
    const queries = blocksRunBy("test/suites/prometheus/prometheus.test.ts").map(({ text }) => text);
    expect(queries).toHaveLength(3);
    for (const query of queries) {
      const shareOf = (): Promise<number> => prometheus.valueOf(query.replaceAll("30d:1m", "5s:1s"));
      await expect.poll(shareOf, { message: query }).toBeGreaterThan(0);
      // A busy machine may be slower than the latency objective.
      expect(await shareOf(), query).toBeLessThanOrEqual(1);
    }
  });

  const dashboards = ["deploy/prometheus/grafana-dashboard.json", "protoport/deploy/dashboard.json"];
  test.each(dashboards)("accepts the queries in %s without an error", async (name) => {
    const { panels }: Dashboard = JSON.parse(readFileSync(join(projectFolder, name), "utf8"));
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(15);
    for (const query of queries) {
      const plain = query.replaceAll("$__rate_interval", "10s").replaceAll("$instance", ".*");
      const { status, error } = await prometheus.ask<QueryResponse>(`/api/v1/query?query=${encodeURIComponent(plain)}`);
      expect({ query, status, error }).toEqual({ query, status: "success", error: undefined });
    }
  });
});

/** A server with plants whose store fails once {@link Outage.begin} is called. */
type Outage = AsyncDisposable & { readonly server: CommandLine; begin(): Promise<void> | void };

async function withPostgres(begin: (postgres: PostgresServer, url: string) => Promise<unknown>): Promise<Outage> {
  const folder = createTempFolder();
  const postgres = await startPostgres();
  const url = await postgres.createPlants(Array.from({ length: 5_000 }, (_, i) => BigInt(i + 1)));
  const server = startCommandLine(["serve"], folder.path, { ...serving, DATABASE_URL: url });
  return {
    server,
    begin: async () => void (await begin(postgres, url)),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

// A separate 16 MiB disk, which is full after a line on standard input.
const onSmallDisk = `
  mount -t tmpfs -o size=16m none "$1"
  cd "$1"
  "$2" "$3" migrate
  seq 20000 | "$2" "$3" import
  exec 3<&0
  { read -r _ <&3; cat /dev/zero > full; } 2> /dev/null &
  exec "$2" "$3" serve`;

function withSmallDisk(): Outage {
  const folder = createTempFolder();
  const program = [process.execPath, join(projectFolder, "src/command/main.ts")];
  const inShell = ["sh", "-ec", onSmallDisk, "sh", folder.path, ...program];
  const environment = { ...compileCache, ...serving, DATABASE_URL: "sqlite:plants.db" };
  const server = startProgram("unshare", ["--user", "--map-root-user", "--mount", ...inShell], "/", environment);
  return {
    server,
    begin: () => void server.process.stdin.end("fill\n"),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

const slowCommits = `
  CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(12); RETURN NULL; END';
  CREATE TRIGGER wait AFTER DELETE ON plants EXECUTE FUNCTION wait()`;

// Concurrent, because each waits for the seconds in which an alert is pending.
test.concurrent.for<{ name: string; start: () => Outage | Promise<Outage> }>([
  { name: "PostgreSQL is killed", start: () => withPostgres((postgres) => postgres.stop("immediate")) },
  { name: "the disk is full", start: withSmallDisk },
  { name: "commits take 12 s", start: () => withPostgres((_, url) => runSql(url, slowCommits)) },
])(
  "when $name, the REST call metric has errors and an alert fires",
  { timeout: 120_000 },
  async ({ start }, { expect: { poll } }) => {
    await using outage = await start();
    const { calls, metrics } = await addressesOf(outage.server);
    await using prometheus = await startPrometheus([metrics], withShortTimes);
    const end = new AbortController();
    const load = Array.from({ length: 10 }, () => deletePlants(calls, end.signal, () => token));
    const series = "http_server_request_duration_seconds_count";
    await poll(() => prometheus.valueOf(`sum(rate(${series}[5s]))`)).toBeGreaterThan(0);
    expect(await prometheus.valueOf(`sum(rate(${series}{error_type!=""}[5s]))`)).toBe(Number.NaN);
    const [availability = ""] = blocksRunBy("test/suites/prometheus/prometheus.test.ts").map(({ text }) => text);
    expect(await prometheus.valueOf(availability)).toBe(1);
    await outage.begin();
    const failing = `sum(rate(${series}{error_type="unavailable"}[10s])) / sum(rate(${series}[10s]))`;
    await poll(() => prometheus.valueOf(failing), { timeout: 60_000 }).toBeGreaterThan(0.99);
    const paged = async () => (await prometheus.firing()).map(({ labels }) => labels["alertname"]);
    await poll(paged, { timeout: 60_000 }).toContain("PlantstoreErrors");
    expect(await prometheus.valueOf(availability)).toBeLessThan(0.999);
    end.abort();
    await Promise.all(load);
  },
);
