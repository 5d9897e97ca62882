import { notParsed, parsed, type ParseResult } from "../../operators/inputs/index.ts";
import {
  type PlantLocation,
  type PostgresLocation,
  readServerUrl,
  readServerUrlFile,
  StoreOpenError,
} from "../plants/index.ts";
import { ConfigurationError } from "./configuration-error.ts";

/** Where plants are stored, as a `DATABASE_URL` says. */
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

function readPostgresUrl(url: string): ParseResult<PostgresLocation> {
  return orProblem("be a URL of PostgreSQL", () => {
    readServerUrl(url);
    return { kind: "postgres", url };
  });
}

/** Reads `DATABASE_URL_FILE`: the path of a file with a `postgres://` URL. */
export function readDatabaseUrlFile(urlFile: string): ParseResult<PostgresLocation> {
  return orProblem("name a file with a URL of PostgreSQL", () => {
    const url = readServerUrlFile(urlFile);
    readServerUrl(url);
    return { kind: "postgres", url, urlFile };
  });
}

function orProblem<Value>(must: string, read: () => Value): ParseResult<Value> {
  try {
    return parsed(read());
  } catch (fault) {
    if (!(fault instanceof StoreOpenError)) throw fault;
    return notParsed(`${must}: ${fault.message}`);
  }
}

/**
 * Returns a valid `DATABASE_URL` without its secrets: the user, the password, and the parameters, which may repeat the
 * password.
 */
export function showDatabaseUrl(text: string): string {
  return isPostgresUrl(text) ? `postgres://${readServerUrl(text).name}` : text;
}

/**
 * Reads `DATABASE_URL`, or without it `DATABASE_URL_FILE`, for the command of an operator, which needs a persistent
 * store.
 *
 * @throws ConfigurationError when both are missing, or the first is invalid or not persistent
 */
export function plantLocationOf(url: string | undefined, urlFile?: string): PlantLocation {
  if (!url && urlFile) return valueOf("DATABASE_URL_FILE", readDatabaseUrlFile(urlFile));
  const database = valueOf("DATABASE_URL", url ? readDatabaseUrl(url) : notParsed("be set"));
  if (database.kind !== "memory") return database;
  throw new ConfigurationError(["DATABASE_URL must not be memory:, which only its own server sees"]);
}

function valueOf<Value>(variable: string, reading: ParseResult<Value>): Value {
  if (reading.kind === "value") return reading.value;
  throw new ConfigurationError([`${variable} must ${reading.problems.join(", ")}`]);
}
