import { type SchemaVersion, schemaAfter, type SchemaStep } from "../../contract/schema-version.ts";

/** One step to a newer schema, run while the previous release's servers delete plants. */
export interface Migration extends SchemaStep {
  /** Runs in one transaction, with the store's schema in the `search_path`. May lock its table briefly. */
  readonly sql: string;
  /** The table that `sql` locks. */
  readonly table: string;
}

/**
 * The steps from schema version 1, which `tables.ts` creates. There are no downgrades, and a published step is never
 * edited. A change is a new step at the end. Step `i` leads to version `i + 2`.
 */
export const migrations: readonly Migration[] = [];

/** This release's schema. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);
