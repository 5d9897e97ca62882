import { StoreOpenError } from "../../store-open-error.ts";
import type { Session } from "../server/session.ts";

// Functions with the rights of their owner look into one schema only, whose name they were made with.
const strayedSql = `
  SELECT pronamespace::regnamespace FROM pg_proc
  WHERE proname IN ('plantstore_make_days', 'plantstore_drop_day') AND pg_function_is_visible(oid)
    AND position('search_path=' || pronamespace::regnamespace || ',' IN array_to_string(proconfig, ';')) = 0`;

/**
 * Refuses a schema that was renamed: the records of another one that has its name now could be dropped.
 *
 * @throws StoreOpenError
 */
export async function refuseRenamedSchema(session: Session): Promise<void> {
  const [strayed] = await session.query(strayedSql);
  if (strayed !== undefined) {
    throw new StoreOpenError(`the schema ${strayed[0]} had another name: run \`plantstore migrate\``);
  }
}

/** Has the functions of a schema that was renamed look into it. */
export async function followRenamedSchema(session: Session): Promise<void> {
  if ((await session.query(strayedSql)).length === 0) return;
  const functions = await session.query(
    `SELECT format('ALTER FUNCTION %s SET search_path = %s, pg_temp', oid::regprocedure, pronamespace::regnamespace)
     FROM pg_proc WHERE proname LIKE 'plantstore\\_%' AND pg_function_is_visible(oid)`,
  );
  for (const [sql] of functions) await session.run(sql ?? "");
}
