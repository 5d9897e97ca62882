import { createHash } from "node:crypto";
import { sqlStateOf } from "./sql-state.ts";

/** A statement that a connection can prepare under a name. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** Names a statement by a hash of its text, so that no statement of another pooler client has the same name. */
export function nameStatement(text: string): NamedStatement {
  return { name: `${namePrefix}${createHash("sha256").update(text).digest("base64url")}`, text };
}

/** The prefix for statement and cursor names, for operators who query `pg_prepared_statements`. */
export const namePrefix = "plantstore_";

/**
 * Tracks whether a store's connections keep prepared statements. For a single deletion, prepared statements save more
 * than half of the server's work. PgBouncer before 1.21, or with `max_prepared_statements = 0`, does not keep prepared
 * statements. After the first error for a prepared statement, the store prepares no more statements.
 */
export class NamedStatements {
  #areKept = true;
  readonly #onRefused: (problem: string) => void;

  /** @param onRefused - called once, with the server's error message. Must not throw */
  constructor(onRefused: (problem: string) => void) {
    this.#onRefused = onRefused;
  }

  get areKept(): boolean {
    return this.#areKept;
  }

  /** Returns whether the server refused a statement because of its name. If true, later statements have no name. */
  isRefused(fault: unknown): boolean {
    // An error with a context (`where`) comes from a trigger.
    if (!(fault instanceof Error) || ("where" in fault && fault.where !== undefined)) return false;
    // RevalidateCachedQuery fails if a table change has altered the result.
    const isStale = "routine" in fault && fault.routine === "RevalidateCachedQuery";
    // 26000 means that the prepared statement does not exist, and 42P05 that the statement already exists.
    if (!isStale && !/^(?:26000|42P05)$/.test(sqlStateOf(fault) ?? "")) return false;
    if (this.#areKept) this.#onRefused(fault.message);
    this.#areKept = false;
    return true;
  }
}
