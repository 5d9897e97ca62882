import { readFileSync, statSync } from "node:fs";
import {
  explainSystemError,
  notParsed,
  parsed,
  type ParseResult,
  type WatchedFile,
  watchFile,
  withoutLineEnd,
} from "@plantstore/auth/inputs";
import type { Log } from "@plantstore/telemetry/logs";
import {
  demandSameDatabase,
  type PlantLocation,
  type PostgresLocation,
  readServerUrl,
  StoreOpenError,
} from "../stores/index.ts";
import { ConfigurationError, valueOf } from "./configuration-error.ts";
import { unwrapped } from "./setting-text.ts";

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
  return orProblem("be a PostgreSQL URL", () => {
    readServerUrl(url);
    return { kind: "postgres", url };
  });
}

/** Reads `DATABASE_URL_FILE`: the path of a file with a `postgres://` URL. */
export function readDatabaseUrlFile(urlFile: string): ParseResult<PostgresLocation> {
  return orProblem("be a file with a PostgreSQL URL", () => {
    const url = readUrlFile(urlFile);
    const wrapping = unwrapped(url);
    if (wrapping.kind === "problems") throw new StoreOpenError(`the URL must ${wrapping.problems.join(", ")}`);
    readServerUrl(url);
    return { kind: "postgres", url, urlFile };
  });
}

// The largest file that is read, in bytes, which keeps a file that was named by mistake, such as a disk image, out of
// memory.
const urlFileBytesMax = 4_096;

/** Returns the URL in a file, without the line end after it. Errors name the file, but nothing of its content. */
function readUrlFile(file: string): string {
  try {
    const stats = statSync(file);
    if (!stats.isFile() || stats.size > urlFileBytesMax)
      throw new Error(`it is not a regular file of at most ${urlFileBytesMax} bytes`);
    return withoutLineEnd(readFileSync(file, "utf8"));
  } catch (fault) {
    throw new StoreOpenError(`cannot read ${file}: ${explainSystemError(fault)}`, { cause: fault });
  }
}

/** A place of plants, and the file that its URL is from, if that is watched. */
export interface FollowedDatabase {
  readonly location: Database;
  readonly file?: WatchedFile;
}

/**
 * Watches the file that the URL of a database is from, if it is from one, and reads it for each connection as well. User
 * and password may change in it; that there is any other text is logged, and the last URL stays.
 *
 * @throws ConfigurationError when the file cannot be used
 */
export async function followDatabase(location: Database, log: Log): Promise<FollowedDatabase> {
  if (location.kind !== "postgres" || location.urlFile === undefined) return { location };
  const { url, urlFile } = location;
  let current = url;
  const take = (renewed: string): ParseResult<object> => {
    const same = orProblem("be of the same database", () => demandSameDatabase(url, renewed));
    // The reason could show a part of a password that is not encoded.
    if (same.kind === "problems") return notParsed("only the user and password of the URL may change");
    current = renewed;
    return parsed({});
  };
  const file = await watchFile({
    paths: [urlFile],
    what: "database URL file",
    limitBytes: urlFileBytesMax,
    log,
    apply: (text) => take(withoutLineEnd(text)),
  });
  // Read for each connection, because the watch is late, and a password that is refused is not tried again.
  const currentUrl = (): string => {
    const read = readDatabaseUrlFile(urlFile);
    if (read.kind === "value") take(read.value.url);
    return current;
  };
  return { location: { ...location, currentUrl }, file: valueOf(file, "cannot use DATABASE_URL_FILE: ") };
}

/**
 * Resolves to what a store is opened to.
 *
 * @throws StoreOpenError that also names the setting which says where the store is
 */
export async function namingDatabase<Opened>(location: Database, opening: Promise<Opened>): Promise<Opened> {
  return await opening.catch((reason: unknown) => {
    if (!(reason instanceof StoreOpenError)) throw reason;
    const isFromFile = location.kind === "postgres" && location.urlFile !== undefined;
    const variable = isFromFile ? "DATABASE_URL_FILE" : "DATABASE_URL";
    throw new StoreOpenError(`${variable}: ${reason.message}`, { cause: reason });
  });
}

function readUnwrapped<Value>(text: string, read: (text: string) => ParseResult<Value>): ParseResult<Value> {
  const wrapping = unwrapped(text);
  return wrapping.kind === "problems" ? wrapping : read(text);
}

function orProblem<Value>(must: string, read: () => Value): ParseResult<Value> {
  try {
    return parsed(read());
  } catch (fault) {
    if (!(fault instanceof StoreOpenError)) throw fault;
    return notParsed(`${must} (${fault.message})`);
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
  const [text, file] = [withoutLineEnd(url ?? ""), withoutLineEnd(urlFile ?? "")];
  if (text === "" && file !== "") return valueOf(readUnwrapped(file, readDatabaseUrlFile), "DATABASE_URL_FILE must ");
  const reading = text === "" ? notParsed("be set") : readUnwrapped(text, readDatabaseUrl);
  const database = valueOf(reading, "DATABASE_URL must ");
  if (database.kind !== "memory") return database;
  throw new ConfigurationError(["DATABASE_URL must not be memory:, which only a running server can access"]);
}
