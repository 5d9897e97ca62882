import type { Result } from "../runner/index.ts";
import type { Server } from "./servers.ts";

/** What was measured of a server. */
export interface Measured {
  readonly server: Pick<Server, "name">;
  readonly results: readonly Result[];
}

/** How many cases a server keeps. */
interface Counts {
  readonly name: string;
  readonly must: readonly [kept: number, failed: number];
  readonly should: readonly [kept: number, failed: number];
  /** How many of the failed `must` are refused, but with 5xx. */
  readonly faults: number;
  readonly left: number;
}

/** Counts what each server keeps. */
export function countsOf(measured: readonly Measured[]): readonly Counts[] {
  return measured.map(({ server: { name }, results }) => {
    const must = results.filter(({ case: { level } }) => level === "must");
    const should = results.filter(({ case: { level } }) => level === "should");
    return {
      name,
      must: [kept(must), failed(must)],
      should: [kept(should), failed(should)],
      faults: must.filter(({ problems }) => problems[0]?.startsWith("expected the status 4xx, got 5")).length,
      left: results.filter(({ outcome }) => outcome === "not run").length,
    };
  });
}

/** The table in Markdown: how many cases each server keeps. What it fails may be in its list of known failures. */
export function tableOf(measured: readonly Measured[]): string {
  const rows = countsOf(measured).map(({ name, must, faults, should, left }) => {
    return `| ${[name, ...must, faults, ...should, left].join(" | ")} |\n`;
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
