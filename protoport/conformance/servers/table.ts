import type { Result } from "../runner/index.ts";
import type { Server } from "./servers.ts";

/** A server's results. */
export type Measured = { readonly server: Pick<Server, "name">; readonly results: readonly Result[] };

/** The number of cases that a server passes. */
interface Counts {
  readonly name: string;
  readonly must: readonly [kept: number, failed: number];
  readonly should: readonly [kept: number, failed: number];
  /** The number of failed `must` cases that the server refuses with 5xx instead of 4xx. */
  readonly faults: number;
  readonly left: number;
}

/** Counts the cases that each server passes. */
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

/** Returns the table in Markdown, with the cases that each server passes. Known failures count as failed. */
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
