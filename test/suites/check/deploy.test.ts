import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { settings } from "../../../src/server/index.ts";

const folder = join(projectFolder, "deploy");
const filesIn = (deploy: string): string[] =>
  readdirSync(join(projectFolder, deploy), { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.\w+$|Dockerfile/.test(name),
  );
const folders = ["deploy", "protoport/deploy"];
const files = folders.flatMap((deploy) => filesIn(deploy).map((name) => `${deploy}/${name}`));
const known: ReadonlySet<string> = new Set(Object.values(settings).map(({ variable }) => variable));
/** Labels that Prometheus, histograms and workers add. */
const ofPrometheus: ReadonlySet<string> = new Set(["instance", "job", "le", "worker"]);

/** Each metric's labels on both pages about metrics. Another test compares them with the server. */
function documentedMetrics(): Map<string, readonly string[]> {
  const docs = ["docs", "protoport/docs"]
    .map((house) => readFileSync(join(projectFolder, house, "reference/metrics.md"), "utf8"))
    .join("\n");
  const rows = docs.matchAll(/^\| `([a-z0-9_]+)` \| (?:counter|gauge|histogram) \|([^|]*)\|/gm);
  const labelled = [...rows].map(([, name = "", labels = ""]) => [name, labels.match(/[a-z_]+/g) ?? []] as const);
  return new Map(labelled);
}

/** Returns the metrics that a text queries, with the labels in their selectors. */
function queriesOf(text: string): { metric: string; names: string[] }[] {
  const plain = text.replaceAll('\\"', '"');
  const selectors = plain.matchAll(
    /\b((?:rpc|http|db|plantstore|gateway|nodejs|process)_[a-z0-9_]+?)(?:_bucket|_sum|_count)?\b(?:\{([^}]*)\})?/g,
  );
  const labels = new Set([...documentedMetrics().values()].flat());
  return [...selectors].flatMap(([, metric = "", selected = ""]) =>
    // Excludes labels in "sum by (…)", which look like metrics.
    labels.has(metric)
      ? []
      : [{ metric, names: [...selected.matchAll(/([a-z_]+)(?==|!)/g)].map(([, name = ""]) => name) }],
  );
}

const alertRules = readFileSync(join(folder, "prometheus/alerts.yml"), "utf8").split("- alert: ").slice(1);
const namedRules = alertRules.map((rule) => ({ rule, name: /^\w+/.exec(rule)?.[0] ?? "" }));
test.each(namedRules)("the runbook section for $name begins with a command", ({ rule, name }) => {
  const [, page = "", anchor] = /\n +runbook: ([^#\s]+)#(\S+)/.exec(rule) ?? [];
  expect(anchor).toBe(name.toLowerCase());
  const [, section = ""] = readFileSync(join(folder, "..", page), "utf8").split(`\n## ${name}\n`);
  const severity = rule.includes("severity: page") ? "Page" : "Warning";
  // At most two paragraphs before the first command.
  expect(section).toMatch(new RegExp(`^\n${severity}\\. (?:[^\n]+\n|\n(?!\n|#|\\|)){1,8}\`\`\`sh\n`));
});

test("each runbook section has an alert", () => {
  const sections = ["docs/how-to/runbooks/plantstore.md", "protoport/docs/how-to/runbooks/proxy.md"].flatMap((name) =>
    Array.from(readFileSync(join(projectFolder, name), "utf8").matchAll(/^## (.*)$/gm), ([, section]) => section),
  );
  expect(new Set(sections)).toEqual(new Set(alertRules.map((rule) => /^\w+/.exec(rule)?.[0])));
});

describe("a deployment example", () => {
  test.each(files)("%s has only known settings", (name) => {
    const text = readFileSync(join(projectFolder, name), "utf8");
    const names = text.matchAll(/\b(?:PLANTSTORE_[A-Z_]+[A-Z]|DATABASE_URL|TLS_[A-Z_]+)\b/g);
    expect(Array.from(names, ([variable]) => variable).filter((variable) => !known.has(variable))).toEqual([]);
  });

  test("uses only metrics and labels of the pages about metrics", () => {
    const asked = [
      "deploy/prometheus/alerts.yml",
      "deploy/prometheus/grafana-dashboard.json",
      "protoport/deploy/dashboard.json",
    ].flatMap((name) => queriesOf(readFileSync(join(projectFolder, name), "utf8")));
    expect(asked.length).toBeGreaterThan(40);
    const labels = new Set([...documentedMetrics().values()].flat());
    for (const { metric, names } of asked) {
      expect(documentedMetrics().has(metric), metric).toBe(true);
      expect(names.filter((label) => !labels.has(label) && !ofPrometheus.has(label))).toEqual([]);
    }
  });

  test('has only pods that Pod Security "restricted" accepts', () => {
    const pods = ["deploy/kubernetes/base/plantstore.yaml", "protoport/deploy/kubernetes/base/proxy.yaml"]
      .flatMap((name) => readFileSync(join(projectFolder, name), "utf8").split(/^---$/m))
      .filter((document) => document.includes("containers:"));
    expect(pods.length).toBeGreaterThan(1);
    for (const pod of pods) {
      expect(pod).toMatch(/runAsNonRoot: true/);
      expect(pod).toMatch(/seccompProfile: \{ type: RuntimeDefault \}/);
      expect(pod).toMatch(/allowPrivilegeEscalation: false.*capabilities: \{ drop: \[ALL\] \}/);
    }
  });

  test.each(folders)("is listed in %s/README.md, or its folder is", (deploy) => {
    const readme = readFileSync(join(projectFolder, deploy, "README.md"), "utf8");
    const rows = readme.split("\n").filter((line) => line.startsWith("| ["));
    const listed = rows.flatMap((row) => Array.from(row.matchAll(/\]\(([^)]+)\)/g), ([, path = ""]) => path));
    const deployed = filesIn(deploy).filter((name) => name !== "README.md" && !name.endsWith(".dockerignore"));
    expect(deployed.filter((name) => !listed.some((path) => `${name}/`.startsWith(`${path}/`)))).toEqual([]);
  });
});

test("the image has the Node.js version that runs the tests", () => {
  const stages = readFileSync(join(folder, "Dockerfile"), "utf8").matchAll(/^FROM node:(\S+)/gm);
  expect(Array.from(stages, ([, tag]) => tag)).toEqual(Array(4).fill(`${process.versions.node}-slim`));
});
