import { StoreOpenError } from "../../contract/store-open-error.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { readSettings } from "./requested-settings.ts";
import { type Parameters, parseUrl, readWord } from "./parse-url.ts";
import { readTlsSettings, type Tls, tlsAttemptsOf } from "./tls-settings.ts";

/** The server in a database URL. With several hosts, one of the hosts is the primary. */
export interface Server {
  /** The server's hosts, ports and database, for operators. Contains neither user nor password. */
  readonly name: string;
  /** The hosts. Read this property for each connection, because certificates may change. */
  readonly hosts: readonly Host[];
  /** The certificate files that the URL names. Empty if no connection uses TLS. */
  readonly certificates: CertificateFiles;
  /** Whether to refuse read-only hosts. The default for several hosts is `true`, because only one is the primary. */
  readonly mustBeWritable: boolean;
  /** The settings in the URL's `options`, by name. */
  readonly settings: ReadonlyMap<string, string>;
}

/** A host of a server: the options of each connection attempt, in order (libpq's `sslmode`). */
export type Host = readonly ClientOptions[];

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

// Maximum connect timeout, in seconds. Without a timeout, a host that never responds would block the other hosts.
const connectTimeoutSMax = 60;

// Idle time before TCP checks the server, in milliseconds. Imports and exports have no other timeout.
const keepAliveMs = 10_000;

const supportedParameters: readonly string[] = (
  "application_name channel_binding connect_timeout dbname host options password port ssl sslcert sslkey sslmode " +
  "sslrootcert target_session_attrs user"
).split(" ");

/**
 * Parses `postgres://user:password@host:port/database?parameters` as libpq does. docs/explanation/storage.md lists the
 * parameters. Other parameters are errors, because security may depend on a parameter. With several hosts, the writable
 * host is used, unless `target_session_attrs` is `any`.
 *
 * @param certificates - the certificates from a previous URL for the same database
 * @throws StoreOpenError that names the invalid part. The message never contains the password
 */
export function readServerUrl(text: string, certificates?: CertificateFiles): Server {
  const parameters = parseUrl(text);
  const unknown = [...parameters.keys()].filter((name) => !supportedParameters.includes(name));
  if (unknown.length > 0) throw new StoreOpenError(`unsupported parameters in the database URL: ${unknown.join(", ")}`);
  const target = readWord(parameters, "target_session_attrs", ["any", "read-write", "primary"]);
  const hosts = hostsOf(parameters);
  const sharedOptions = sharedOptionsOf(parameters);
  const { mode, paths } = readTlsSettings(parameters);
  const isTlsUsed = mode !== "disable" && hosts.some(({ host }) => !host.startsWith("/"));
  const files = certificates ?? new CertificateFiles(isTlsUsed ? paths : new Map());
  const names = hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
  return {
    name: `${names.join()}/${databaseOf(parameters)}`,
    mustBeWritable: target === undefined ? hosts.length > 1 : target !== "any",
    settings: readSettings(sharedOptions.options ?? ""),
    certificates: files,
    get hosts() {
      const pem = files.current;
      return hosts.map(({ host, port }) =>
        tlsAttemptsOf(host, mode, pem).map((ssl) => ({ ...sharedOptions, host, port, ssl })),
      );
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
  const { name, mustBeWritable, settings, certificates } = readServerUrl(url);
  return {
    name,
    mustBeWritable,
    settings,
    certificates,
    get hosts() {
      return readServerUrl(currentUrl(), certificates).hosts;
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

// A single port applies to all hosts.
function hostsOf(parameters: Parameters): readonly Pick<ClientOptions, "host" | "port">[] {
  const names = (parameters.get("host") ?? "").split(",");
  const ports = (parameters.get("port") ?? "").split(",");
  if (ports.length !== 1 && ports.length !== names.length) {
    throw new StoreOpenError("the database URL must have one port, or one for each host");
  }
  return names.map((name, i) => ({ host: name || "localhost", port: readPort(ports[ports.length === 1 ? 0 : i]) }));
}

function readPort(text: string | undefined): number {
  const port = text || portDefault;
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number >= 1 && number <= 65_535) return number;
  throw new StoreOpenError("a port in the database URL must be between 1 and 65535");
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
