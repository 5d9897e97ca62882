/** A change that another pooler client may leave on a server connection. */
export interface LeftOnConnections {
  /** Completes the sentence "another client leaves …". */
  readonly name: string;
  /** The changed settings, as named in docs/reference/postgresql.md. */
  readonly settings: readonly string[];
  /** The other client's statements; idempotent. */
  readonly sql: string;
  /** Whether the server may refuse the store's statements because of it. Default false. */
  readonly refuses?: true;
}

/** Everything that docs/reference/postgresql.md lists. The roles `neighbor` and `gardener` must exist. */
// oxfmt-ignore
export const leftOnConnections: readonly LeftOnConnections[] = [
  { name: "another schema", settings: ["search_path"], sql: "SET search_path = neighbor" },
  {
    name: "tables with the same names",
    settings: ["temporary tables"],
    sql: `CREATE TEMP TABLE IF NOT EXISTS plants (id bigint); CREATE TEMP TABLE IF NOT EXISTS deletions (seq bigint);
      CREATE TEMP TABLE IF NOT EXISTS plantstore_schema (version integer)`,
  },
  { name: "cursors with common names", settings: ["cursors"],
    sql: `CLOSE ALL; DECLARE rows CURSOR WITH HOLD FOR SELECT 1; DECLARE plants CURSOR WITH HOLD FOR SELECT 1` },
  { name: "commits that do not wait", settings: ["synchronous_commit"], sql: "SET synchronous_commit = off" },
  { name: "hidden warnings", settings: ["client_min_messages"], sql: "SET client_min_messages = error" },
  { name: "no triggers", settings: ["session_replication_role"], sql: "SET session_replication_role = replica" },
  { name: "strict isolation", settings: ["default_transaction_isolation"],
    sql: "SET default_transaction_isolation = serializable" },
  {
    name: "other formats",
    settings: ["DateStyle", "IntervalStyle", "TimeZone", "extra_float_digits"],
    sql: `SET DateStyle = 'SQL, DMY'; SET IntervalStyle = sql_standard; SET TimeZone = 'Asia/Kolkata';
      SET extra_float_digits = -15`,
  },
  { name: "another encoding", settings: ["client_encoding"], sql: "SET client_encoding = LATIN1" },
  { name: "other parsing of SQL",
    settings: ["standard_conforming_strings", "quote_all_identifiers", "transform_null_equals"],
    sql: "SET standard_conforming_strings = off; SET quote_all_identifiers = on; SET transform_null_equals = on" },
  { name: "arrays without NULL", settings: ["array_nulls"], sql: "SET array_nulls = off" },
  { name: "read-only transactions", settings: ["default_transaction_read_only"],
    sql: "SET default_transaction_read_only = on", refuses: true },
  { name: "refused row security", settings: ["row_security"], sql: "SET row_security = off", refuses: true },
  { name: "a role with other privileges", settings: ["role"], sql: "SET ROLE gardener", refuses: true },
  { name: "a role without privileges", settings: ["role"], sql: "SET ROLE neighbor", refuses: true },
];
