import { runSql } from "./postgres-server.ts";

/**
 * Makes successive statements fail with these SQLSTATEs. Statements after the last one succeed, and so does one with
 * "". A sequence counts the statements, because it is not rolled back.
 *
 * A trigger raises the errors. Only 42P01 is an error in the statement itself, raised in a condition outside any
 * function.
 * @param event - the statements that fail
 * @param plant - only statements for this plant
 */
export async function failAttempts(
  url: string,
  event: "DELETE ON plants" | "UPDATE ON deletions",
  sqlStates: readonly string[],
  plant?: bigint,
): Promise<void> {
  const row = plant === undefined ? "" : "FOR EACH ROW";
  const condition = plant === undefined ? "" : `OLD.id = ${plant} AND`;
  await runSql(
    url,
    `CREATE SEQUENCE attempts;
     CREATE FUNCTION fail_attempt() RETURNS text LANGUAGE plpgsql AS $$
       DECLARE state text := ('{${sqlStates.map((state) => `"${state}"`).join()}}'::text[])[nextval('attempts')];
       BEGIN
         IF state = '42P01' THEN RETURN 'nowhere'; END IF;
         IF state <> '' THEN RAISE 'no' USING ERRCODE = state; END IF;
         RETURN 'attempts';
       END $$;
     CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
     CREATE TRIGGER fail_attempt BEFORE ${event} ${row} WHEN (${condition} fail_attempt()::regclass IS NULL) EXECUTE FUNCTION pass()`,
  );
}

export async function countAttempts(url: string): Promise<number> {
  const [row] = await runSql(url, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS attempts FROM attempts");
  return Number(row?.["attempts"]);
}

export async function failAlways(
  url: string,
  event: "DELETE ON plants" | "INSERT ON deletions" | "UPDATE ON deletions",
  sqlState: string,
): Promise<void> {
  const sql = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE 'no' USING ERRCODE = '${sqlState}'; END $$;
     CREATE TRIGGER refuse BEFORE ${event} EXECUTE FUNCTION refuse()`;
  await runSql(url, sql);
}
