import { type SchemaVersion, schemaAfter, type SchemaStep } from "../../schema-version.ts";

/** One step to a newer schema, taken while servers of the release before delete plants. */
export interface Migration extends SchemaStep {
  /**
   * Run in one transaction, to whose `search_path` its names belong, perhaps several times: what it creates, it creates
   * `IF NOT EXISTS`. It may lock its table for a moment.
   */
  readonly sql: string;
  /** The table that `sql` locks. */
  readonly table: string;
  /**
   * An index of a table that may be large. It is built after `sql` and before the version changes, beside servers that
   * keep deleting, and so outside of a transaction
   * (postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY).
   */
  readonly index?: {
    readonly table: string;
    readonly name: string;
    /** @param table - the table, qualified */
    readonly create: (table: string) => string;
  };
}

/**
 * The steps from schema version 1, which `tables.ts` creates. Forward only: a published step is never edited; a change
 * is a new step at the end. Step `i` leads to version `i + 2`.
 */
export const migrations: readonly Migration[] = [];

/** The schema of this release. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);
