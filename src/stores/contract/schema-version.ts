import { StoreOpenError } from "./store-options.ts";

/** A store's schema version. */
export interface SchemaVersion {
  /** The number of migration steps plus 1, or 0 if there is no store. */
  readonly version: number;
  /** The schema version of the oldest release whose servers can use the schema. */
  readonly oldestServer: number;
}

/** How a migration step affects the servers that use the store. */
export interface SchemaStep {
  /** Set if the previous release's servers cannot use the new schema, and must be stopped before this step. */
  readonly breaking?: true;
}

/** The schema versions before and after a migration. */
export interface Versions {
  readonly from: number;
  /** The version after the migration. Equals `from` if the schema is newer than this release's schema. */
  readonly to: number;
}

/** The version of an empty database. */
export const noSchema: SchemaVersion = { version: 0, oldestServer: 0 };

/** Returns the schema version after the migration `steps`, which start from version 1. */
export function schemaAfter(steps: readonly SchemaStep[]): SchemaVersion {
  const version = steps.length + 1;
  const isBreaking = steps.at(-1)?.breaking === true;
  return { version, oldestServer: isBreaking ? version : Math.max(1, version - 1) };
}

/** The advice if a store is missing. A new store would hide the loss of a store that a server still has open. */
export const createAdvice: string =
  'only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it';

/** The error for a store from before release 0.1.0, whose schema does not contain the oldest usable release. */
export function preReleaseStore(): StoreOpenError {
  return new StoreOpenError(
    "it was created by a plantstore before release 0.1.0, which no release can migrate: " +
      'run "plantstore export" of that plantstore, create a new store with "plantstore migrate" of this release, ' +
      'and run "plantstore import"',
  );
}

/**
 * Checks that a release with the schema version `supported` can use a store. A release supports its own version, and the
 * next version if the step is not breaking, so that servers can run during and after the next release's `migrate`.
 *
 * @throws StoreOpenError with the reason and advice for the operator
 */
export function assertUsableSchema({ version, oldestServer }: SchemaVersion, supported: number): void {
  if (version === 0) throw new StoreOpenError(`it does not contain a plant store yet: ${createAdvice}`);
  if (version < supported) {
    throw new StoreOpenError(
      `its schema has version ${version}, but this release supports versions ${supported} and ${supported + 1}: ` +
        'run "plantstore migrate" of this release',
    );
  }
  const oldest = Math.max(oldestServer, version - 1);
  if (oldest <= supported) return;
  throw new StoreOpenError(
    `its schema has version ${version}, which requires a release of schema version ${oldest} or newer, ` +
      `but this release has schema version ${supported}: use a newer release`,
  );
}
