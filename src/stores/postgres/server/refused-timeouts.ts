import type { SessionTimeouts } from "./connect.ts";
import type { Session } from "./session.ts";

const timeoutsSql = `
  SELECT name, setting || coalesce(unit, ''), wanted FROM pg_catalog.pg_settings
  JOIN (VALUES ('lock_timeout', $1), ('statement_timeout', $2)) AS needed (needed_name, wanted) ON name = needed_name
  WHERE setting <> wanted ORDER BY name`;

/**
 * Returns the problem if the server has refused the session's timeouts and other timeouts apply, otherwise `undefined`.
 * Without a short `lock_timeout`, a single locked plant delays its whole batch.
 */
export async function findRefusedTimeouts(session: Session, timeouts: SessionTimeouts): Promise<string | undefined> {
  const refusal = session.settingsRefusal;
  if (refusal === undefined) return undefined;
  const wanted = [timeouts.lockTimeoutMs, timeouts.statementTimeoutMs].map(String);
  const wrong = await session.query(timeoutsSql, wanted);
  if (wrong.length === 0) return undefined;
  const current = wrong.map(([name, value]) => `${name} is ${value}`);
  const statements = wrong.map(([name, , needed]) => `ALTER ROLE … SET ${name} = '${needed}ms'`);
  return `${refusal}; ${current.join(", ")}: run ${statements.join(" and ")}`;
}
