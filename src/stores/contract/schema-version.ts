import { StoreOpenError } from "./store-open-error.ts";

/** A store's schema version. */
export interface SchemaVersion {
  /** One more than the migration steps, or 0 without a store. */
  readonly version: number;
  /** The schema version of the oldest release whose servers can use the schema. */
  readonly oldestServer: number;
}

/** How a migration step affects the servers that use the store. */
export interface SchemaStep {
  /** Set if the previous release's servers cannot use the schema after this step. All must be stopped before it. */
  readonly breaking?: true;
}

/** A schema's version before a migration, and after it. */
export interface Versions {
  readonly from: number;
  /** Greater than the release's version if a newer schema was left unchanged. */
  readonly to: number;
}

/** No schema, as in an empty database. */
export const noSchema: SchemaVersion = { version: 0, oldestServer: 0 };

/** Returns the schema after steps from version 1. */
export function schemaAfter(steps: readonly SchemaStep[]): SchemaVersion {
  const version = steps.length + 1;
  const isBreaking = steps.at(-1)?.breaking === true;
  return { version, oldestServer: isBreaking ? version : Math.max(1, version - 1) };
}

/**
 * The advice for an operator whose store is missing. If a store is deleted while a server has it open, the operator can
 * still save it. A new store at its path would hide that.
 */
export const createAdvice: string =
  'only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it';

/** The error for a store older than release 0.1.0, whose schema does not record the oldest server. */
export function preReleaseStore(): StoreOpenError {
  return new StoreOpenError(
    "it was created by a plantstore before release 0.1.0, which no release can migrate: " +
      'run "plantstore export" of that plantstore, create a new store with "plantstore migrate" of this release, ' +
      'and run "plantstore import"',
  );
}

/**
 * Checks that a release can use a store's schema.
 *
 * A release supports its own schema version and the next one, unless the next one is marked as breaking. So servers
 * keep deleting while the next release's `migrate` changes the schema, and can still be restarted afterwards.
 *
 * @param supported - the release's schema version
 * @throws StoreOpenError with the reason and what to do
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
