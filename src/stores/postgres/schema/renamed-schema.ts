import { StoreOpenError } from "../../contract/store-open-error.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

const functionsSql = `
  FROM pg_catalog.pg_proc AS one JOIN pg_catalog.pg_namespace AS schema ON schema.oid = pronamespace
  WHERE nspname = $1`;

// A function that runs with its owner's privileges uses only one schema. PostgreSQL stored the schema's name when the
// function was created. The stored name is quoted if necessary, or if the settings at that time required quotes.
const renamedSchemaSql = `
  SELECT FROM (SELECT nspname, pg_catalog.array_to_string(proconfig, ';') AS settings, proname ${functionsSql}) AS one
  WHERE proname IN ('plantstore_make_days', 'plantstore_drop_day')
    AND pg_catalog.strpos(settings, 'search_path=' || nspname || ',') = 0
    AND pg_catalog.strpos(settings, 'search_path="' || pg_catalog.replace(nspname, '"', '""') || '",') = 0`;

/** @throws StoreOpenError for a renamed schema, because its functions could drop records in the old name's schema */
export async function refuseRenamedSchema(session: Session, { name }: StoreSchema): Promise<void> {
  if ((await session.query(renamedSchemaSql, [name])).length > 0) {
    throw new StoreOpenError(`the schema ${name} was renamed: run "plantstore migrate" to update its functions`);
  }
}

/** Changes the functions in a renamed schema to use the new name. */
export async function updateRenamedSchema(
  session: Session,
  { name, quoted, versionTable }: StoreSchema,
): Promise<void> {
  await session.transact(readCommitted, async () => {
    // Without the lock, concurrent migrations would fail, because a function cannot be changed twice at the same time.
    await session.query(`SELECT FROM ${versionTable} FOR UPDATE`);
    if ((await session.query(renamedSchemaSql, [name])).length === 0) return;
    const functions = await session.query(
      `SELECT one.oid::pg_catalog.regprocedure ${functionsSql} AND pg_catalog.left(proname, 11) = 'plantstore_'`,
      [name],
    );
    const updates = functions.map(([signature]) => `ALTER FUNCTION ${signature} SET search_path = ${quoted}, pg_temp`);
    await session.run(updates.join("; "));
  });
}
