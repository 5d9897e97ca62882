import { type SchemaVersion, schemaAfter, type SchemaStep } from "../../contract/schema-version.ts";

/** One step to a newer schema. The previous release's servers delete plants during the step. */
export interface Migration extends SchemaStep {
  /** Runs in one transaction, with the store's schema in the `search_path`. May lock {@link table} briefly. */
  readonly sql: string;
  readonly table: string;
}

/** The steps from schema version 1. Step `i` leads to version `i + 2`. Add steps at the end, never edit old ones. */
export const migrations: readonly Migration[] = [];

/** The schema version of this release. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);
