/** One step to a newer schema. */
export interface Migration {
  /**
   * Its names are those of the schema, to which the `search_path` of its transaction leads. Run in one transaction with
   * the change of the version. Before an index, it is run in a transaction of its own, perhaps several times, and may
   * lock the table of the index for a moment.
   */
  readonly sql: string;
  /**
   * An index of a table that may be large. It is built before the version changes, beside servers that keep deleting,
   * and so outside of a transaction (postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY).
   */
  readonly index?: {
    readonly table: string;
    readonly name: string;
    /** @param table - the table, qualified where no `search_path` leads to it */
    readonly create: (table: string) => string;
  };
  /** Whether the deletion records are divided by day then, where the server can, as `by-day.ts` does it. */
  readonly byDay?: true;
}

/**
 * The schema of the PostgreSQL store, one step per version. Forward only: a published step is never edited; a change is
 * a new step at the end. Step `i` creates version `i + 1`.
 *
 * Plain tables and b-trees, so that other databases that speak the protocol of PostgreSQL accept them too: only
 * PostgreSQL itself divides records by day.
 */
export const migrations: readonly Migration[] = [
  {
    sql: `CREATE TABLE plantstore_schema (version integer NOT NULL);
      INSERT INTO plantstore_schema (version) VALUES (0);
      CREATE TABLE plants (id bigint PRIMARY KEY);`,
  },
  // plant_id is not unique: a restored plant can be deleted again. Its index serves retries, which look for the ids of
  // one batch, and imports, which look for deleted ids.
  {
    sql: `CREATE TABLE deletions (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        plant_id bigint NOT NULL,
        deleted_at timestamptz NOT NULL DEFAULT now(),
        subject text NOT NULL,
        request_id text NOT NULL,
        batch uuid NOT NULL
      );
      CREATE INDEX deletions_by_plant ON deletions (plant_id);
      CREATE INDEX deletions_by_time ON deletions (deleted_at);`,
  },
  // Of two processes that use the same key at once, the index lets one commit. It has no entries for deletions without
  // a key, which pay nothing for it.
  {
    sql: "ALTER TABLE deletions ADD COLUMN IF NOT EXISTS idempotency_key text",
    index: {
      table: "deletions",
      name: "deletions_by_key",
      create: (table) => `CREATE UNIQUE INDEX CONCURRENTLY deletions_by_key ON ${table} (idempotency_key)
        WHERE idempotency_key IS NOT NULL`,
    },
  },
  // A day that is dropped as a whole costs a thousandth of deleting its rows.
  { sql: "", byDay: true },
];
