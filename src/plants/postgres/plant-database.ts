import { StoreOpenError } from "../errors.ts";
import { inOperatorWords } from "../operator-words.ts";
import type { PlantDatabase } from "../plant-database.ts";
import { listDeletions } from "./deletions.ts";
import { exportPlants } from "./export.ts";
import { startImport } from "./import.ts";
import { checkDatabase, migrate } from "./migrate.ts";
import { problemOf } from "./problem.ts";
import { readServerUrl, type Server } from "./server-url.ts";
import { Session } from "./session.ts";

// The first record can be no older.
const beginning = new Date(0);

/**
 * Opens a PostgreSQL database for an operator, beside the servers that use it. Nothing has a time-out.
 *
 * @throws StoreOpenError naming the server and what is wrong with it or its schema
 */
export async function openPostgresDatabase(url: string): Promise<PlantDatabase> {
  const server = readServerUrl(url);
  await onSession(server, checkDatabase);
  return inOperatorWords(server.name, (fault) => problemOf(fault).text, {
    startImport: async (options = {}) => startImport(new Session(server), options),
    exportPlants: () => exportPlants(new Session(server)),
    listDeletions: (since = beginning) => listDeletions(new Session(server), since),
    // Every one of these has a session of its own.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

/**
 * Brings a PostgreSQL database to the schema of this release, and says from which version to which.
 *
 * @throws StoreOpenError naming the server and what is wrong with it or its schema
 */
export function migratePostgres(url: string): Promise<{ readonly from: number; readonly to: number }> {
  return onSession(readServerUrl(url), migrate);
}

async function onSession<Result>(server: Server, work: (session: Session) => Promise<Result>): Promise<Result> {
  const session = new Session(server);
  try {
    return await work(session);
  } catch (fault) {
    throw new StoreOpenError(`cannot use ${server.name}: ${problemOf(fault).text}`, { cause: fault });
  } finally {
    await session.close();
  }
}
