import { backUp, openSqliteDatabase, type PlantDatabase } from "../plants/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import type { Database } from "./database-url.ts";
import { settings } from "./settings.ts";

/**
 * Opens the plants of a `DATABASE_URL` for an operator, beside the servers that may be using them.
 *
 * @throws ConfigurationError when the URL cannot be understood, or keeps nothing that could be opened
 * @throws StoreOpenError when there is no store, or it cannot be worked with
 */
export async function openPlantDatabase(url: string | undefined): Promise<PlantDatabase> {
  const database = readDatabase(url);
  switch (database.kind) {
    case "memory":
      throw new ConfigurationError(["DATABASE_URL must not be memory:, which only its own server sees"]);
    case "sqlite":
      return await openSqliteDatabase(database.path);
  }
}

/**
 * Copies the store of a `DATABASE_URL` into a new file, as it is at one moment.
 *
 * @throws ConfigurationError when the URL is not that of an SQLite file
 * @throws StoreOpenError when the store cannot be read, or the copy cannot be written or is there already
 */
export function backUpPlants(url: string | undefined, copy: string): void {
  const database = readDatabase(url);
  if (database.kind === "sqlite") return backUp(database.path, copy);
  throw new ConfigurationError([
    "DATABASE_URL must be sqlite:<file> for a backup; a server's own tools back up its databases",
  ]);
}

function readDatabase(url: string | undefined): Database {
  const { variable, about, read } = settings.database;
  if (url === undefined || url === "") throw new ConfigurationError([`${variable} is missing: ${about}`]);
  const reading = read(url);
  if (reading.kind === "bad") throw new ConfigurationError([`${variable} must ${reading.must}`]);
  return reading.value;
}
