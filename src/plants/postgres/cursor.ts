import { runMax } from "../runs.ts";
import type { Row, Session } from "./session.ts";

/**
 * The rows of a query in runs, all of one moment, however long they are read. The session is closed
 * at the end, also when the reader stops before it.
 */
export async function* runsOf(session: Session, query: string): AsyncGenerator<readonly Row[]> {
  try {
    // One transaction sees one moment, and PgBouncer leaves it on one server connection.
    await session.begin(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; DECLARE rows NO SCROLL CURSOR FOR ${query}`);
    for (;;) {
      const rows = await session.query(`FETCH ${runMax} FROM rows`);
      if (rows.length > 0) yield rows;
      if (rows.length < runMax) return;
    }
  } finally {
    await session.close();
  }
}
