import { StoreOpenError } from "../../store-open-error.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

// The functions of a schema, as `one`.
const functionsSql = `
  FROM pg_catalog.pg_proc AS one JOIN pg_catalog.pg_namespace AS schema ON schema.oid = pronamespace
  WHERE nspname = $1`;

// Functions with the rights of their owner look into one schema only, whose name they were made with.
const strayedSql = `
  SELECT FROM (SELECT 'search_path=' || pronamespace::pg_catalog.regnamespace || ',' AS own, proconfig, proname
    ${functionsSql}) AS one
  WHERE proname IN ('plantstore_make_days', 'plantstore_drop_day')
    AND pg_catalog.strpos(pg_catalog.array_to_string(proconfig, ';'), own) = 0`;

/**
 * Refuses a schema that was renamed: the records of another one that has its name now could be dropped.
 *
 * @throws StoreOpenError
 */
export async function refuseRenamedSchema(session: Session, { name }: StoreSchema): Promise<void> {
  if ((await session.query(strayedSql, [name])).length > 0) {
    throw new StoreOpenError(`the schema ${name} had another name: run \`plantstore migrate\``);
  }
}

/** Has the functions of a schema that was renamed look into it. */
export async function followRenamedSchema(session: Session, { name, quoted }: StoreSchema): Promise<void> {
  if ((await session.query(strayedSql, [name])).length === 0) return;
  const functions = await session.query(
    `SELECT one.oid::pg_catalog.regprocedure ${functionsSql} AND pg_catalog.left(proname, 11) = 'plantstore_'`,
    [name],
  );
  for (const [signature] of functions)
    await session.run(`ALTER FUNCTION ${signature} SET search_path = ${quoted}, pg_temp`);
}
