import { runSql } from "./postgres-server.ts";

/**
 * Makes statements fail, one after the other as they come, with these SQLSTATEs; those after the last one succeed. They
 * are counted by a sequence, which goes on where what it has counted is rolled back.
 *
 * @param event - which statements
 */
export async function failTries(
  url: string,
  event: "DELETE ON plants" | "UPDATE ON deletions",
  sqlStates: readonly string[],
): Promise<void> {
  await runSql(
    url,
    `CREATE SEQUENCE tries;
     CREATE FUNCTION fail_try() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE state text := ('{${sqlStates.join()}}'::text[])[nextval('tries')];
       BEGIN IF state <> '' THEN RAISE 'no' USING ERRCODE = state; END IF; RETURN NULL; END $$;
     CREATE TRIGGER fail_try BEFORE ${event} EXECUTE FUNCTION fail_try()`,
  );
}

/** How many of the statements have come. */
export async function countTries(url: string): Promise<number> {
  const [row] = await runSql(url, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS tries FROM tries");
  return Number(row?.["tries"]);
}
