import { notParsed, parsed, type ParseResult } from "../auth/index.ts";
import { type PlantLocation, readServerUrl, StoreOpenError } from "../plants/index.ts";
import { ConfigurationError } from "./configuration-error.ts";

/** The meaning of a `DATABASE_URL`. */
export type Database = { readonly kind: "memory" } | PlantLocation;

const forms = "be sqlite:<file>, postgres://user:password@host:port/database or memory:";

/**
 * Reads a `DATABASE_URL`: `sqlite:plants.db` (a path as the file system reads it, relative to the working directory or
 * absolute), `postgres://…` as libpq reads it, or `memory:`.
 */
export function readDatabaseUrl(text: string): ParseResult<Database> {
  if (text === "memory:") return parsed({ kind: "memory" });
  if (isPostgresUrl(text)) return readPostgresUrl(text);
  if (!text.startsWith("sqlite:")) return notParsed(forms);
  const path = text.slice("sqlite:".length);
  // SQLite would take "" and ":memory:" for a database that is gone with the process.
  if (path === "" || path.startsWith(":") || path.includes("\0")) return notParsed(forms);
  return parsed({ kind: "sqlite", path });
}

function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text);
}

function readPostgresUrl(url: string): ParseResult<Database> {
  try {
    readServerUrl(url);
    return parsed({ kind: "postgres", url });
  } catch (fault) {
    if (!(fault instanceof StoreOpenError)) throw fault;
    return notParsed(`be a URL of PostgreSQL: ${fault.message}`);
  }
}

/** Returns a valid `DATABASE_URL` without what may be secret: user, password and parameters, which can repeat a password. */
export function showDatabaseUrl(text: string): string {
  return isPostgresUrl(text) ? `postgres://${readServerUrl(text).name}` : text;
}

/**
 * Reads the `DATABASE_URL` for the command of an operator, which needs a persistent store.
 *
 * @throws ConfigurationError when it is missing, invalid or not persistent
 */
export function plantLocationOf(url: string | undefined): PlantLocation {
  const reading = url === undefined || url === "" ? notParsed("be set") : readDatabaseUrl(url);
  if (reading.kind === "problems") throw new ConfigurationError([`DATABASE_URL must ${reading.problems.join(", ")}`]);
  if (reading.value.kind !== "memory") return reading.value;
  throw new ConfigurationError(["DATABASE_URL must not be memory:, which only its own server sees"]);
}
