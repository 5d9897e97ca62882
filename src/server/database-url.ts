import {
  explainSystemError,
  parsed,
  type ParseResult,
  type WatchedFile,
  watchFile,
  withoutLineEnd,
  withProblems,
} from "@protoport/auth/inputs";
import { maxPemBytes, readRegularFileSync } from "@protoport/command-line";
import type { Log } from "@protoport/telemetry/logs";
import {
  assertSameDatabase,
  isDurable,
  type PlantLocation,
  type PostgresLocation,
  readServerUrl,
  type StoreLocation,
  StoreOpenError,
} from "../stores/index.ts";
import { ConfigurationError, valueOrThrow } from "./configuration-error.ts";

/** The functions that process a `DATABASE_URL` for one kind of store. */
interface UrlForm<Location> {
  /** The URL's syntax, for an operator. */
  readonly form: string;
  /** Matches all URLs for this store kind, including invalid URLs. */
  readonly pattern: RegExp;
  /** Reads a URL that {@link pattern} matches. Returns `undefined` for a URL with another syntax. */
  read(text: string): ParseResult<Location> | undefined;
  /** Returns a valid URL without its secrets. By default, a URL has no secrets. */
  show?(text: string): string;
  /** Watches the files on which a URL depends, if any. */
  watch?(location: Location, log: Log): Promise<WatchedDatabase>;
}

const urlForms: { readonly [Kind in StoreLocation["kind"]]: UrlForm<Extract<StoreLocation, { readonly kind: Kind }>> } =
  {
    sqlite: { form: "sqlite:<file>", pattern: /^sqlite:/, read: readSqliteUrl },
    postgres: {
      form: "postgres://user:password@host:port/database",
      pattern: /^postgres(?:ql)?:\/\//,
      read: readPostgresUrl,
      show: (text) => `postgres://${readServerUrl(text).name}`,
      watch: watchPostgres,
    },
    memory: { form: "memory:", pattern: /^memory:$/, read: () => parsed({ kind: "memory" }) },
  };

/**
 * Reads a `DATABASE_URL`, such as `sqlite:plants.db`, `postgres://…` or `memory:`. An SQLite path is absolute or
 * relative to the working directory, and is not percent-encoded. A `postgres://` URL is read like in libpq.
 */
export function readDatabaseUrl(text: string): ParseResult<StoreLocation> {
  const forms = Object.values(urlForms).map(({ form }) => form);
  return urlFormOf(text)?.read(text) ?? withProblems(`be ${forms.slice(0, -1).join(", ")} or ${forms.at(-1)}`);
}

function urlFormOf(text: string): (typeof urlForms)[StoreLocation["kind"]] | undefined {
  return Object.values(urlForms).find(({ pattern }) => pattern.test(text));
}

function readSqliteUrl(text: string): ParseResult<{ readonly kind: "sqlite"; readonly path: string }> | undefined {
  const path = text.slice("sqlite:".length);
  // Refuses "" and ":memory:", because SQLite would open a temporary database.
  if (path === "" || path.startsWith(":") || path.includes("\0")) return undefined;
  return parsed({ kind: "sqlite", path });
}

function readPostgresUrl(url: string): ParseResult<PostgresLocation> {
  return toResult("be a PostgreSQL URL", () => {
    readServerUrl(url);
    return { kind: "postgres", url };
  });
}

/** Reads `DATABASE_URL_FILE`, which is the path to a file with a `postgres://` URL. */
export function readDatabaseUrlFile(urlFile: string): ParseResult<PostgresLocation> {
  return toResult("be a file with a PostgreSQL URL", () => {
    const url = readUrlFile(urlFile);
    const unquoted = refuseQuotesAndSpaces(url);
    if (unquoted.kind === "problems") throw new StoreOpenError(`the URL must ${unquoted.problems.join(", ")}`);
    readServerUrl(url);
    return { kind: "postgres", url, urlFile };
  });
}

// Maximum size of a URL file, in bytes. A wrong file, such as a disk image, must not be read into memory.
const maxUrlFileBytes = 4_096;

/** Returns the URL in a file, without a line break at the end. Errors contain the path, but no file content. */
function readUrlFile(file: string): string {
  try {
    return withoutLineEnd(readRegularFileSync(file, maxUrlFileBytes).toString("utf8"));
  } catch (cause) {
    throw new StoreOpenError(`cannot read ${file}: ${explainSystemError(cause)}`, { cause });
  }
}

/** A store's location, and the watched files on which the store's URL depends. */
interface WatchedDatabase {
  readonly location: StoreLocation;
  readonly files: readonly WatchedFile[];
}

/**
 * Watches the file with the database URL, and the certificate files in the URL. The store reads these files for each
 * connection. The watch logs and measures whether the files' content is usable.
 *
 * @throws ConfigurationError if a file is unusable
 */
export async function watchDatabase(location: StoreLocation, log: Log): Promise<WatchedDatabase> {
  const form: Pick<UrlForm<StoreLocation>, "watch"> = urlForms[location.kind];
  return (await form.watch?.(location, log)) ?? { location, files: [] };
}

async function watchPostgres(location: PostgresLocation, log: Log): Promise<WatchedDatabase> {
  const urlFile = await watchDatabaseUrl(location, log);
  const certificates = await watchCertificates(location, log);
  return {
    location: urlFile?.location ?? location,
    files: [urlFile?.file, certificates].flatMap((file) => file ?? []),
  };
}

// Watches the file with the database URL, if any. Refuses a new URL that changes more than user and password.
async function watchDatabaseUrl(
  location: PostgresLocation,
  log: Log,
): Promise<{ readonly location: PostgresLocation; readonly file: WatchedFile } | undefined> {
  const { url, urlFile } = location;
  if (urlFile === undefined) return undefined;
  let current = url;
  const acceptUrl = (renewed: string): ParseResult<object> => {
    const sameDatabase = toResult("be of the same database", () => assertSameDatabase(url, renewed));
    // The message does not include the reason, because the reason may contain a part of an unencoded password.
    if (sameDatabase.kind === "problems") return withProblems("only the user and password of the URL may change");
    current = renewed;
    return parsed({});
  };
  const file = await watchFile({
    paths: [urlFile],
    what: "database URL file",
    limitBytes: maxUrlFileBytes,
    log,
    apply: (text) => acceptUrl(withoutLineEnd(text)),
  });
  // Reads the file for each connection, because the watch has a delay, and a refused password is not retried.
  const currentUrl = (): string => {
    const read = readDatabaseUrlFile(urlFile);
    if (read.kind === "value") acceptUrl(read.value.url);
    return current;
  };
  return { location: { ...location, currentUrl }, file: valueOrThrow(file, "cannot use DATABASE_URL_FILE: ") };
}

/** Watches the certificate files in a database URL, if any. */
async function watchCertificates({ url }: PostgresLocation, log: Log): Promise<WatchedFile | undefined> {
  const { certificates } = readServerUrl(url);
  if (certificates.paths.length === 0) return undefined;
  const file = await watchFile({
    paths: certificates.paths,
    what: "certificates of the database URL",
    limitBytes: maxPemBytes,
    log,
    apply: () => {
      try {
        certificates.read();
        return parsed({});
      } catch (error) {
        if (!(error instanceof StoreOpenError)) throw error;
        return withProblems(error.message);
      }
    },
  });
  return valueOrThrow(file, "cannot use DATABASE_URL: ");
}

/**
 * Resolves to the opened store.
 *
 * @throws StoreOpenError with a message that begins with the setting for the store's location
 */
export async function withDatabaseSetting<Opened>(location: StoreLocation, opening: Promise<Opened>): Promise<Opened> {
  return await opening.catch((reason: unknown) => {
    if (!(reason instanceof StoreOpenError)) throw reason;
    const isFromFile = "urlFile" in location && location.urlFile !== undefined;
    const variable = isFromFile ? "DATABASE_URL_FILE" : "DATABASE_URL";
    throw new StoreOpenError(`${variable}: ${reason.message}`, { cause: reason });
  });
}

/** Reads a text. Returns a problem for a text that begins or ends with quotes or white space. */
function readUnquotedText<Value>(text: string, read: (text: string) => ParseResult<Value>): ParseResult<Value> {
  const unquoted = refuseQuotesAndSpaces(text);
  return unquoted.kind === "problems" ? unquoted : read(text);
}

function toResult<Value>(requirement: string, read: () => Value): ParseResult<Value> {
  try {
    return parsed(read());
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error;
    return withProblems(`${requirement} (${error.message})`);
  }
}

/** Returns a valid `DATABASE_URL` without user, password and parameters. A parameter may contain the password. */
export function showDatabaseUrl(text: string): string {
  return urlFormOf(text)?.show?.(text) ?? text;
}

/**
 * Returns a command's persistent store, from `DATABASE_URL`, or from `DATABASE_URL_FILE` if `DATABASE_URL` is not set.
 *
 * @throws ConfigurationError if both settings are missing, or if the setting is invalid or not persistent
 */
export function plantLocationOf(url: string | undefined, urlFile?: string): PlantLocation {
  const [text, file] = [withoutLineEnd(url ?? ""), withoutLineEnd(urlFile ?? "")];
  if (text === "" && file !== "")
    return valueOrThrow(readUnquotedText(file, readDatabaseUrlFile), "DATABASE_URL_FILE must ");
  const result = text === "" ? withProblems("be set") : readUnquotedText(text, readDatabaseUrl);
  const database = valueOrThrow(result, "DATABASE_URL must ");
  if (isDurable(database)) return database;
  throw new ConfigurationError(["DATABASE_URL must not be memory:, which only a running server can access"]);
}

/**
 * Returns the text, or a problem ("PORT must …") if the text has a byte order mark, surrounding white space or quotes.
 * For example, `plants.db` with a trailing space would create an empty store.
 */
export function refuseQuotesAndSpaces(text: string): ParseResult<string> {
  // Checks the byte order mark first, because `trim` also removes a byte order mark.
  if (text.startsWith("\uFEFF")) return withProblems("not begin with a byte order mark");
  if (text !== text.trim()) return withProblems("not begin or end with white space");
  return /^(["'`]).*\1$/s.test(text) ? withProblems("not be enclosed in quotes") : parsed(text);
}
