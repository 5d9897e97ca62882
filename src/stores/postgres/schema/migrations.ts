import { type SchemaVersion, schemaAfter, type SchemaStep } from "../../contract/schema-version.ts";

/** One step to a newer schema, run while the previous release's servers delete plants. */
export interface Migration extends SchemaStep {
  /**
   * SQL that runs in one transaction, with the store's schema in the `search_path`. The SQL may run several times, so
   * it must use `IF NOT EXISTS`. The SQL may lock its table briefly.
   */
  readonly sql: string;
  /** The table that `sql` locks. */
  readonly table: string;
  /**
   * An index on a table that may be large. The index is built after `sql` and before the version changes, concurrently
   * with deletions and therefore outside a transaction
   * (postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY).
   */
  readonly index?: {
    readonly table: string;
    readonly name: string;
    /**
     * @param table - the table's qualified name
     */
    readonly create: (table: string) => string;
  };
}

/**
 * The steps from schema version 1, which `tables.ts` creates. There are no downgrades, and a published step is never
 * edited. A change is a new step at the end. Step `i` leads to version `i + 2`.
 */
export const migrations: readonly Migration[] = [];

/** This release's schema. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);
