import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../process/child-program.ts";
import { startProgram } from "../process/command-line.ts";
import { createTempFolder } from "../process/temp-folder.ts";

/** The folder with the scrape configuration, the rules and the dashboard. */
export const deployedFolder: string = join(projectFolder, "deploy/prometheus");

/** The members of Prometheus's response to a query that tests read. */
export interface QueryResponse {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

type AlertsResponse = { readonly data: { readonly alerts: readonly Alert[] } };
type Alert = { readonly state: string; readonly labels: Readonly<Record<string, string>> };

export interface Prometheus extends AsyncDisposable {
  ask<Answer>(path: string): Promise<Answer>;
  /** Returns the value of a query's first series, or NaN if the query has no series. */
  valueOf(query: string): Promise<number>;
  firing(): Promise<readonly Alert[]>;
}

/** Shortens the rules' time ranges to seconds. */
export const withShortTimes = (rules: string): string => rules.replaceAll("for: 5m", "for: 2s").replaceAll("5m", "10s");

/** Starts a Prometheus that scrapes every second. @param change - modifies the deploy/prometheus rules */
export async function startPrometheus(
  targets: readonly string[],
  change: (rules: string) => string = (rules) => rules,
): Promise<Prometheus> {
  const folder = createTempFolder();
  const configuration = readFileSync(join(deployedFolder, "prometheus.yml"), "utf8")
    .replace('"127.0.0.1:9464"', targets.map((target) => JSON.stringify(target)).join())
    .replaceAll("15s", "1s");
  writeFileSync(folder.file("prometheus.yml"), configuration);
  writeFileSync(folder.file("alerts.yml"), change(readFileSync(join(deployedFolder, "alerts.yml"), "utf8")));
  mkdirSync(folder.file("data"));
  const options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"];
  const program = startProgram("prometheus", options, folder.path);
  const [, listening = ""] = await program.find(/Listening on"? address=(\S+)/);
  const ask = async <Answer>(path: string): Promise<Answer> =>
    JSON.parse(await (await fetch(`http://${listening}${path}`)).text());
  return {
    ask,
    valueOf: async (query) => {
      const { data, status, error } = await ask<QueryResponse>(`/api/v1/query?query=${encodeURIComponent(query)}`);
      if (status !== "success") throw new Error(`${query}: ${error}`);
      return Number(data.result[0]?.value[1] ?? Number.NaN);
    },
    firing: async () => {
      const { data } = await ask<AlertsResponse>("/api/v1/alerts");
      return data.alerts.filter(({ state }) => state === "firing");
    },
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
