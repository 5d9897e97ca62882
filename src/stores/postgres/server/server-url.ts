import { StoreOpenError } from "../../contract/store-open-error.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { readSettings } from "./requested-settings.ts";
import { type Parameters, parseUrl, readWord } from "./parse-url.ts";
import { readTlsSettings, type Tls, tlsAttemptsOf } from "./tls-settings.ts";

/** The server in a database URL. */
export interface Server {
  /** The server's host, port and database, for operators. Contains neither user nor password. */
  readonly name: string;
  /**
   * The options of each connection attempt, in order (libpq's `sslmode`). Read this property for each connection,
   * because certificates may change.
   */
  readonly attempts: readonly ClientOptions[];
  /** The certificate files that the URL names. Empty if no connection uses TLS. */
  readonly certificates: CertificateFiles;
  /** The condition for using a server (libpq's `target_session_attrs`). */
  readonly target: Target;
  /** The settings in the URL's `options`, by name. */
  readonly settings: ReadonlyMap<string, string>;
}

const targets = ["any", "read-write", "primary"] as const;
type Target = (typeof targets)[number];

/** Options for pg's client. Does not use pg's types, because programs may lack pg's types. */
export interface ClientOptions {
  readonly host: string;
  readonly port: number;
  readonly ssl: Tls;
  readonly database?: string;
  readonly user?: string;
  readonly password?: string;
  readonly options?: string;
  readonly application_name: string;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelayMillis: number;
  readonly enableChannelBinding: boolean;
  readonly requiresChannelBinding: boolean;
}

const portDefault = "5432";

// Default connect timeout, in seconds. A running server responds within 10 ms.
const connectTimeoutSDefault = 5;

// Maximum connect timeout, in seconds.
const connectTimeoutSMax = 60;

// Idle time before TCP checks the server, in milliseconds. Imports and exports have no other timeout.
const keepAliveMs = 10_000;

const supportedParameters: readonly string[] = (
  "application_name channel_binding connect_timeout dbname host options password port ssl sslcert sslkey sslmode " +
  "sslrootcert target_session_attrs user"
).split(" ");

/**
 * Parses `postgres://user:password@host:port/database?parameters` as libpq does. docs/reference/postgresql.md lists the
 * parameters. Other parameters are errors, because security may depend on a parameter.
 *
 * @param certificates - the certificates from a previous URL for the same database
 * @throws StoreOpenError that names the invalid part. The message never contains the password
 */
export function readServerUrl(text: string, certificates?: CertificateFiles): Server {
  const parameters = parseUrl(text);
  const unknown = [...parameters.keys()].filter((name) => !supportedParameters.includes(name));
  if (unknown.length > 0) throw new StoreOpenError(`unsupported parameters in the database URL: ${unknown.join(", ")}`);
  const target = readWord(parameters, "target_session_attrs", targets) ?? "any";
  const host = readHost(parameters);
  const port = readPort(parameters.get("port"));
  const sharedOptions = sharedOptionsOf(parameters);
  const { mode, paths } = readTlsSettings(parameters);
  const isTlsUsed = mode !== "disable" && !host.startsWith("/");
  const files = certificates ?? new CertificateFiles(isTlsUsed ? paths : new Map());
  return {
    name: `${host.includes(":") ? `[${host}]` : host}:${port}/${databaseOf(parameters)}`,
    target,
    settings: readSettings(sharedOptions.options ?? ""),
    certificates: files,
    get attempts() {
      return tlsAttemptsOf(host, mode, files.current).map((ssl) => ({ ...sharedOptions, host, port, ssl }));
    },
  };
}

/**
 * Returns the server for a URL whose user and password may change while the store is open.
 *
 * @param currentUrl - returns the current URL, for each connection. {@link assertSameDatabase} must accept the URL
 * @throws StoreOpenError if the URL cannot be used
 */
export function followServerUrl(url: string, currentUrl: () => string): Server {
  const { name, target, settings, certificates } = readServerUrl(url);
  return {
    name,
    target,
    settings,
    certificates,
    get attempts() {
      return readServerUrl(currentUrl(), certificates).attempts;
    },
  };
}

/** @throws StoreOpenError if a new URL, perhaps written incompletely, differs in more than user and password */
export function assertSameDatabase(url: string, renewed: string): void {
  if (targetOf(renewed) !== targetOf(url))
    throw new StoreOpenError("the new URL must differ only in user and password");
}

function targetOf(url: string): string {
  const { user, password: _, dbname, ...others } = Object.fromEntries(parseUrl(url));
  // If the URL names no database, the database has the user's name.
  return JSON.stringify({ ...others, dbname: dbname || user });
}

// Returns the same database as pg would. Does not import pg, because loading pg would slow down the start of a server
// with SQLite by 10 %.
function databaseOf(parameters: Parameters): string {
  const { PGDATABASE, PGUSER, USER, USERNAME } = process.env;
  return parameters.get("dbname") || PGDATABASE || parameters.get("user") || PGUSER || USER || USERNAME || "";
}

function readHost(parameters: Parameters): string {
  const host = parameters.get("host") || "localhost";
  if (!host.includes(",")) return host;
  throw new StoreOpenError(
    "the database URL must have one host: give one address, such as the service's name, HAProxy or PgBouncer",
  );
}

function readPort(text: string | undefined): number {
  const port = text || portDefault;
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number >= 1 && number <= 65_535) return number;
  throw new StoreOpenError("the port in the database URL must be between 1 and 65535");
}

function sharedOptionsOf(parameters: Parameters): Omit<ClientOptions, "host" | "port" | "ssl"> {
  const channelBinding = readWord(parameters, "channel_binding", ["disable", "prefer", "require"]) ?? "disable";
  const [user, password, database, options] = ["user", "password", "dbname", "options"].map((n) => parameters.get(n));
  return {
    // node-postgres reads the defaults from PGUSER, PGPASSWORD and PGDATABASE, as libpq does.
    ...(database && { database }),
    ...(user && { user }),
    ...(password && { password }),
    ...(options && { options }),
    application_name: parameters.get("application_name") ?? "plantstore",
    connectionTimeoutMillis: 1_000 * readConnectTimeoutS(parameters),
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    enableChannelBinding: channelBinding !== "disable",
    requiresChannelBinding: channelBinding === "require",
  };
}

function readConnectTimeoutS(parameters: Parameters): number {
  const text = parameters.get("connect_timeout") ?? String(connectTimeoutSDefault);
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= connectTimeoutSMax) return seconds;
  throw new StoreOpenError(
    `connect_timeout in the database URL must be an integer between 1 and ${connectTimeoutSMax}, in seconds`,
  );
}
