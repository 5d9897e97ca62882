import { createHash } from "node:crypto";
import { sqlStateOf } from "./sql-state.ts";

/** A statement that a connection to the server may keep under a name. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * Names a statement by its text. A pooler may lead to a connection on which others have prepared statements, of another
 * release or another program, and under their name this one must never be run for it.
 */
export function nameStatement(text: string): NamedStatement {
  return { name: `${namesBegin}${createHash("sha256").update(text).digest("base64url")}`, text };
}

/** How the names of statements and cursors begin, for an operator who looks at `pg_prepared_statements`. */
export const namesBegin = "plantstore_";

/**
 * Whether statements are kept by the connections of a store: then each is parsed and planned once, which is more than
 * half of what a single deletion costs the server.
 *
 * PgBouncer does not know of names before its release 1.21, or with `max_prepared_statements = 0`, and sends each
 * transaction to whichever connection is free. From the first refusal on, no statement of the store is named.
 */
export class NamedStatements {
  readonly #onRefused: (problem: string) => void;
  #areKept = true;

  /** @param onRefused - called once, with what the server says of a name. Must not throw */
  constructor(onRefused: (problem: string) => void) {
    this.#onRefused = onRefused;
  }

  get areKept(): boolean {
    return this.#areKept;
  }

  /**
   * Returns whether a statement failed because of its name. Then nothing of it was run, and from now on no statement is
   * named.
   */
  isRefused(fault: unknown): boolean {
    if (!(fault instanceof Error) || !isRefusal(fault)) return false;
    if (this.#areKept) this.#onRefused(fault.message);
    this.#areKept = false;
    return true;
  }
}

// 26000: there is no statement of this name; 42P05: there is one already. Where the server says where it was, a trigger
// has raised it. RevalidateCachedQuery says that a table has changed so much that the result would have other types.
function isRefusal(fault: Error): boolean {
  if ("where" in fault && fault.where !== undefined) return false;
  const state = sqlStateOf(fault);
  return state === "26000" || state === "42P05" || ("routine" in fault && fault.routine === "RevalidateCachedQuery");
}
