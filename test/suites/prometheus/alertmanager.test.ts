import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { type CommandLine, createTempFolder, freePort, startProgram } from "@protoport/testing/process";
import { deployedFolder } from "../../../protoport/testing/src/telemetry/prometheus.ts";

// A real Alertmanager with deploy/prometheus/alertmanager.yml, to which amtool sends the alerts for outages.

const configuration = join(deployedFolder, "alertmanager.yml");
const rules = readFileSync(join(deployedFolder, "alerts.yml"), "utf8").split("- alert: ").slice(1);
const severities = new Map(
  rules.map((rule) => [/^\w+/.exec(rule)?.[0] ?? "", /severity: (\w+)/.exec(rule)?.[1] ?? ""] as const),
);

async function amtool(...args: readonly string[]): Promise<string> {
  await using tool = startProgram("amtool", args, import.meta.dirname);
  const code = await tool.end();
  if (code !== 0) throw new Error(`amtool ${args.join(" ")}: ${tool.stderr()}${tool.stdout()}`);
  return tool.stdout();
}

test("amtool finds no problems in alertmanager.yml", async () =>
  expect(await amtool("check-config", configuration)).toContain("SUCCESS"));

test("each alert in alertmanager.yml exists", () => {
  const patterns = readFileSync(configuration, "utf8").matchAll(/alertname=~?"([^"]+)"/g);
  for (const [, pattern = ""] of patterns) {
    const alternatives = pattern.replace(/^(\w+)\(([^)]*)\)$/, (_, start, ends) =>
      String(ends).replaceAll(/\w+/g, (end) => `${start}${end}`),
    );
    for (const name of alternatives.split("|")) expect(severities.has(name), name).toBe(true);
  }
});

test.each([...severities])("%s with severity %s is sent to the severity's receiver", async (name, severity) => {
  const receiver = severity === "page" ? "pager" : "tickets";
  const labels = [`alertname=${name}`, `severity=${severity}`];
  await amtool(
    "config",
    "routes",
    "test",
    `--config.file=${configuration}`,
    `--verify.receivers=${receiver}`,
    ...labels,
  );
});

describe("an outage", () => {
  let alertmanager: CommandLine;
  let url: string;
  const folder = shared(() => createTempFolder());
  beforeAll(async () => {
    const address = `127.0.0.1:${await freePort()}`;
    url = `--alertmanager.url=http://${address}`;
    const options = [`--web.listen-address=${address}`, "--cluster.listen-address=", "--storage.path=data"];
    const program = ["prometheus-alertmanager", `--config.file=${configuration}`, ...options];
    // The program's name differs between Debian and Prometheus's own releases.
    const either = 'command -v "$1" > /dev/null || { shift; set -- alertmanager "$@"; }; exec "$@"';
    alertmanager = startProgram("sh", ["-ec", either, "sh", ...program], folder.path);
    await alertmanager.find(/Listening/);
  });
  afterAll(() => alertmanager[Symbol.asyncDispose]());

  test.each<[name: string, notified: readonly string[], fires: readonly string[]]>(
    // oxfmt-ignore
    [
      ["of a server", ["PlantstoreDown"], ["PlantstoreDown", "PlantstoreErrors", "PlantstoreCertificateExpires"]],
      ["of the database", ["PlantstoreNotReady"],
        ["PlantstoreNotReady", "PlantstoreErrors", "PlantstoreSlow", "PlantstoreQueueFilling"]],
      ["of some plants", ["PlantstoreErrors"], ["PlantstoreErrors", "PlantstoreSlow", "PlantstoreOverloaded"]],
      ["with some calls refused as overload", ["PlantstoreOverloaded"],
        ["PlantstoreOverloaded", "PlantstoreQueueFilling", "PlantstoreEventLoopLate", "PlantstoreSlow"]],
      ["with overload until calls reach their deadlines", ["PlantstoreErrors"],
        ["PlantstoreErrors", "PlantstoreOverloaded", "PlantstoreQueueFilling", "PlantstoreEventLoopLate"]],
      ["of an upstream", ["GatewayNotReady"],
        ["GatewayNotReady", "GatewayUpstreamUnavailable", "GatewayUpstreamBusy", "GatewayUpstreamQueued"]],
      ["that affects part of an upstream", ["GatewayUpstreamUnavailable"],
        ["GatewayUpstreamUnavailable", "GatewayUpstreamBusy", "GatewayUpstreamQueued"]],
      ["with two causes", ["PlantstoreCertificateExpires", "PlantstoreErrors", "PlantstoreReloadRefused"],
        ["PlantstoreErrors", "PlantstoreCertificateExpires", "PlantstoreReloadRefused"]],
    ],
  )("$0 sends notifications only for its causes ($1)", async (name, notified, fires) => {
    // Sets labels that only some alerts have. Another server without an outage has a separate alert.
    const instance = `instance=${name}`;
    const add = (alert: string, server: string): Promise<string> =>
      amtool(url, "alert", "add", alert, server, `severity=${severities.get(alert)}`, "upstream=dns:a:1");
    for (const alert of fires) await add(alert, instance);
    await add("PlantstoreSlow", `${instance} elsewhere`);
    const query = async (...matchers: readonly string[]): Promise<readonly string[]> => {
      const printed = await amtool(url, "alert", "query", "--active", "--output=json", ...matchers);
      const alerts: readonly { labels: { alertname: string } }[] = JSON.parse(printed);
      return alerts.map(({ labels }) => labels.alertname).toSorted();
    };
    await expect.poll(() => query(instance)).toEqual(notified);
    expect(await query(`${instance} elsewhere`)).toEqual(["PlantstoreSlow"]);
  });
});
