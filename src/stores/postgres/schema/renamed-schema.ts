import { StoreOpenError } from "../../store-open-error.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

// The functions of a schema, as `one`.
const functionsSql = `
  FROM pg_catalog.pg_proc AS one JOIN pg_catalog.pg_namespace AS schema ON schema.oid = pronamespace
  WHERE nspname = $1`;

// Functions with the rights of their owner look into one schema only, whose name they were made with, in quotes if it
// needs them or the settings of that moment demanded them.
const ofFormerNameSql = `
  SELECT FROM (SELECT nspname, pg_catalog.array_to_string(proconfig, ';') AS settings, proname ${functionsSql}) AS one
  WHERE proname IN ('plantstore_make_days', 'plantstore_drop_day')
    AND pg_catalog.strpos(settings, 'search_path=' || nspname || ',') = 0
    AND pg_catalog.strpos(settings, 'search_path="' || pg_catalog.replace(nspname, '"', '""') || '",') = 0`;

/**
 * Refuses a schema that was renamed: the records of another one that has its name now could be dropped.
 *
 * @throws StoreOpenError
 */
export async function refuseRenamedSchema(session: Session, { name }: StoreSchema): Promise<void> {
  if ((await session.query(ofFormerNameSql, [name])).length > 0) {
    throw new StoreOpenError(`the schema ${name} was renamed: run \`plantstore migrate\` to update its functions`);
  }
}

/** Has the functions of a schema that was renamed look into it. */
export async function followRenamedSchema(session: Session, { name, quoted }: StoreSchema): Promise<void> {
  if ((await session.query(ofFormerNameSql, [name])).length === 0) return;
  const functions = await session.query(
    `SELECT one.oid::pg_catalog.regprocedure ${functionsSql} AND pg_catalog.left(proname, 11) = 'plantstore_'`,
    [name],
  );
  const follow = functions.map(([signature]) => `ALTER FUNCTION ${signature} SET search_path = ${quoted}, pg_temp`);
  await session.runInTransaction(readCommitted, follow.join("; "));
}
