import type { Result } from "../runner/index.ts";
import type { Server } from "./servers.ts";

/** What was measured of a server. */
export interface Measured {
  readonly server: Pick<Server, "name">;
  readonly results: readonly Result[];
}

/** The table in Markdown: how many cases each server keeps. What it fails may be in its list of known failures. */
export function tableOf(measured: readonly Measured[]): string {
  const rows = measured.map(({ server: { name }, results }) => {
    const must = results.filter(({ case: { level } }) => level === "must");
    const should = results.filter(({ case: { level } }) => level === "should");
    const left = results.filter(({ outcome }) => outcome === "not run").length;
    const faults = must.filter(({ problems }) => problems[0]?.startsWith("expected the status 4xx, got 5")).length;
    return `| ${name} | ${kept(must)} | ${failed(must)} | ${faults} | ${kept(should)} | ${failed(should)} | ${left} |\n`;
  });
  return [
    "| server | `must` kept | failed | of these refused, but with 5xx | `should` kept | failed | not run |\n",
    "|---|---|---|---|---|---|---|\n",
    ...rows,
  ].join("");
}

function kept(results: readonly Result[]): number {
  return results.filter(({ outcome, problems }) => outcome !== "not run" && problems.length === 0).length;
}

function failed(results: readonly Result[]): number {
  return results.filter(({ problems }) => problems.length > 0).length;
}
