import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { type CommandLine, startCommandLine, startProgram } from "../support/process/command-line.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

// A real Prometheus with the files of deploy/prometheus, beside a server under load.

const deployed = join(projectFolder, "deploy/prometheus");
const token = "token-of-the-prometheus-test";

// The parts of Prometheus' answers, and of a dashboard, that are looked at.

interface QueryAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

interface RulesAnswer {
  readonly data: {
    readonly groups: readonly { readonly rules: readonly { readonly health: string; readonly lastError?: string }[] }[];
  };
}

interface AlertsAnswer {
  readonly data: { readonly alerts: readonly { readonly state: string }[] };
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
}

async function promtool(...args: readonly string[]): Promise<{ code: number | null; said: string }> {
  await using tool = startProgram("promtool", args, import.meta.dirname);
  const code = await tool.end();
  return { code, said: tool.stdout() + tool.stderr() };
}

test("promtool finds nothing wrong with the scrape configuration and the rules", async () => {
  const { code, said } = await promtool("check", "config", join(deployed, "prometheus.yml"));
  expect({ code, said }).toMatchObject({ code: 0, said: expect.stringContaining("SUCCESS: 11 rules found") });
});

test("every alert comes when it should, and no other", async () => {
  expect(await promtool("test", "rules", "alerts-test.yml")).toMatchObject({ code: 0 });
});

describe("a Prometheus", () => {
  let folder: TempFolder;
  let server: CommandLine;
  let prometheus: CommandLine;
  let base: string;
  const end = new AbortController();
  let load: Promise<void>;

  beforeAll(async () => {
    folder = createTempFolder();
    server = startCommandLine(["serve"], folder.path, {
      PORT: "0",
      DATABASE_URL: "sqlite:plants.db",
      PLANTSTORE_TOKENS: token,
      PLANTSTORE_DRAIN_DELAY_MS: "0",
      PLANTSTORE_ADMIN_ADDRESS: "0",
      LOG_LEVEL: "info",
      PLANTSTORE_AUDIT: "by-level",
    });
    const [, admin = ""] = await server.find(/"port":(\d+),"msg":"metrics are served"/);
    const [, port = ""] = await server.find(/"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/);
    load = (async () => {
      for (let id = 1; !end.signal.aborted; id++) {
        const authorization = id % 5 === 0 ? "Bearer nobody-knows-this-one" : `Bearer ${token}`;
        const request = { method: "DELETE", headers: { authorization } };
        await (await fetch(`http://127.0.0.1:${port}/plants/${id}`, request)).text();
      }
    })();
    const configuration = readFileSync(join(deployed, "prometheus.yml"), "utf8")
      .replace("127.0.0.1:9464", `127.0.0.1:${admin}`)
      .replaceAll("15s", "1s")
      .replace("alerts.yml", join(deployed, "alerts.yml"));
    writeFileSync(folder.file("prometheus.yml"), configuration);
    mkdirSync(folder.file("data"));
    prometheus = startProgram(
      "prometheus",
      ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"],
      folder.path,
    );
    const [, listening = ""] = await prometheus.find(/Listening on"? address=(\S+)/);
    base = `http://${listening}`;
  });
  afterAll(async () => {
    end.abort();
    await load;
    await prometheus[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  async function ask<Answer>(path: string): Promise<Answer> {
    return JSON.parse(await (await fetch(base + path)).text());
  }

  async function valueOf(query: string): Promise<number> {
    const { data, status } = await ask<QueryAnswer>(`/api/v1/query?query=${encodeURIComponent(query)}`);
    expect(status).toBe("success");
    return Number(data.result[0]?.value[1] ?? Number.NaN);
  }

  test("scrapes the server and sees its load", async () => {
    await expect.poll(() => valueOf('up{job="plantstore"}')).toBe(1);
    await expect.poll(() => valueOf("sum(rate(http_server_request_duration_seconds_count[10s]))")).toBeGreaterThan(1);
    await expect.poll(() => valueOf('sum(rate(gateway_refusals_total{kind="invalid"}[10s]))')).toBeGreaterThan(0);
    await expect.poll(() => valueOf("sum(rate(plantstore_delete_batch_size_sum[10s]))")).toBeGreaterThan(0);
  });

  test("evaluates all rules, and none of them fires", async () => {
    const healths = async (): Promise<string[]> => {
      const { data } = await ask<RulesAnswer>("/api/v1/rules");
      return data.groups.flatMap(({ rules }) => rules.map(({ health, lastError }) => lastError ?? health));
    };
    await expect.poll(healths).toEqual(Array(11).fill("ok"));
    const { data } = await ask<AlertsAnswer>("/api/v1/alerts");
    expect(data.alerts.filter(({ state }) => state === "firing")).toEqual([]);
  });

  test("understands every query of the dashboard", async () => {
    const { panels }: Dashboard = JSON.parse(readFileSync(join(deployed, "grafana-dashboard.json"), "utf8"));
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(20);
    for (const query of queries) {
      const plain = query.replaceAll("$__rate_interval", "10s").replaceAll("$instance", ".*");
      const { status, error } = await ask<QueryAnswer>(`/api/v1/query?query=${encodeURIComponent(plain)}`);
      expect({ query, status, error }).toEqual({ query, status: "success", error: undefined });
    }
  });
});
