import { createHash } from "node:crypto";
import { sqlStateOf } from "./sql-state.ts";

/** A statement that may be prepared under a name on a connection. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * Names a statement by a hash of its text, so that one that another client of a pooler has prepared never runs instead.
 */
export function nameStatement(text: string): NamedStatement {
  return { name: `${namePrefix}${createHash("sha256").update(text).digest("base64url")}`, text };
}

/** The prefix for statement and cursor names, for operators who query `pg_prepared_statements`. */
export const namePrefix = "plantstore_";

/**
 * Tracks whether a store's connections keep prepared statements, which saves more than half of the server's work for a
 * single deletion. PgBouncer before 1.21, or with `max_prepared_statements = 0`, does not keep them. After the first
 * such error, the store prepares no more statements.
 */
export class NamedStatements {
  readonly #onRefused: (problem: string) => void;
  #areKept = true;

  /** @param onRefused - called once, with the server's error message. Must not throw */
  constructor(onRefused: (problem: string) => void) {
    this.#onRefused = onRefused;
  }

  get areKept(): boolean {
    return this.#areKept;
  }

  /** Returns whether a statement was not run because of its name. If so, statements are no longer sent by name. */
  isRefused(fault: unknown): boolean {
    if (!(fault instanceof Error) || !isRefusal(fault)) return false;
    if (this.#areKept) this.#onRefused(fault.message);
    this.#areKept = false;
    return true;
  }
}

// 26000: the prepared statement does not exist. 42P05: it already exists. An error with a context (`where`) was raised
// by a trigger. RevalidateCachedQuery: a table has changed, so that the result would have other types.
function isRefusal(fault: Error): boolean {
  if ("where" in fault && fault.where !== undefined) return false;
  const state = sqlStateOf(fault);
  return state === "26000" || state === "42P05" || ("routine" in fault && fault.routine === "RevalidateCachedQuery");
}
