import type { ConnectionOptions, PeerCertificate } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import {
  type KeyPair,
  parseCertificates,
  maxPemBytes,
  readKeyPair,
  readRegularFileSync,
  validityProblem,
} from "@protoport/command-line";
import { StoreOpenError } from "../../contract/store-options.ts";

/** The server in a database URL. */
export interface PostgresServer {
  /** The server's host, port and database, for operators. Contains neither user nor password. */
  readonly name: string;
  /**
   * The options of each connection attempt, in order (libpq's `sslmode`). Read this property for each connection,
   * because the user, the password and certificates may change.
   */
  readonly attempts: readonly ClientOptions[];
  /** The certificate files that the URL names. Empty if no connection uses TLS. */
  readonly certificates: DatabaseCertificateFiles;
  /** The condition for using a server (libpq's `target_session_attrs`): `any`, `read-write` or `primary`. */
  readonly target: string;
  /** The settings in the URL's `options`, by name. */
  readonly settings: ReadonlyMap<string, string>;
}

/** Options for pg's client. Does not use pg's types, because programs may lack pg's types. */
export interface ClientOptions {
  readonly host: string;
  readonly port: number;
  /** `false` for cleartext. */
  readonly ssl: false | ConnectionOptions;
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

type Parameters = ReadonlyMap<string, string>;

// Idle time before TCP checks the server, in milliseconds. Imports and exports have no other timeout.
const keepAliveMs = 10_000;

// Matches a connection URI (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A database name with
// an unencoded @ or / is refused, because @ and / are probably a part of an unencoded password. A host with a comma is
// a list of hosts, which is refused later. An @ before the first / ends a user name or password, never a parameter.
const form =
  /^postgres(?:ql)?:\/\/(?:([^/@:]*)(?::([^/@]*))?@|(?![^/]*@))(?:\[([^[\]/?@]+)\]|([^[\]:/?@]*|[^[\]/?@]*,[^/?@]*))(?::(\d*))?(?:\/([^/?@]*))?(?:\?(.*))?$/s;

// Whether a parameter accepts a value, and the accepted values, for an operator.
type Rule = readonly [accepts: (value: string) => boolean, requirement: string];

const anyText: Rule = [() => true, ""];
const pemFile: Rule = [(path) => path !== "", "the path of a file in PEM"];
const oneOf = (...words: readonly string[]): Rule => [(word) => words.includes(word), `one of ${words.join(", ")}`];
const integerTo = (max: number): Rule => [
  (text) => /^0*[1-9]\d{0,4}$/.test(text) && Number(text) <= max,
  `an integer between 1 and ${max}`,
];

// The rules by parameter. Unknown parameters are refused, because security may depend on them.
const rules: Readonly<Record<string, Rule>> = {
  application_name: anyText,
  channel_binding: oneOf("disable", "prefer", "require"),
  // In seconds. A running server responds within 10 ms.
  connect_timeout: integerTo(60),
  dbname: anyText,
  host: [(host) => !host.includes(","), "one address, such as the service's name, HAProxy or PgBouncer"],
  options: anyText,
  password: anyText,
  port: integerTo(65_535),
  ssl: [(word) => word === "true", "true"],
  sslcert: pemFile,
  sslkey: pemFile,
  sslmode: oneOf("disable", "prefer", "require", "verify-ca", "verify-full"),
  sslrootcert: pemFile,
  target_session_attrs: oneOf("any", "read-write", "primary"),
  user: anyText,
};

/**
 * Reads `postgres://user:password@host:port/database?parameters` as libpq does. docs/reference/postgresql.md lists the
 * parameters.
 *
 * @param currentUrl - returns the current URL, for each connection. {@link assertSameDatabase} must accept the URL
 * @throws StoreOpenError that names the invalid part. The message never contains the password
 */
export function readServerUrl(url: string, currentUrl: () => string = () => url): PostgresServer {
  const parameters = readParameters(url);
  const [{ host, port, options }, { paths }] = [clientOptionsOf(parameters), readTls(parameters)];
  const certificates = new DatabaseCertificateFiles(paths);
  return {
    name: `${host.includes(":") ? `[${host}]` : host}:${port}/${databaseNameOf(parameters)}`,
    target: parameters.get("target_session_attrs") ?? "any",
    settings: readServerSettings(options ?? ""),
    certificates,
    get attempts() {
      const current = readParameters(currentUrl());
      const client = clientOptionsOf(current);
      return tlsAttemptsOf(client.host, readTls(current).mode, certificates.current).map((ssl) => ({ ...client, ssl }));
    },
  };
}

/** @throws StoreOpenError if a new URL, perhaps written incompletely, differs in more than user and password */
export function assertSameDatabase(url: string, renewed: string): void {
  const [before, after] = [url, renewed].map((text) => {
    const { user, password: _, dbname, ...others } = Object.fromEntries(readParameters(text));
    // If the URL names no database, the database has the user's name.
    return { ...others, dbname: dbname || user };
  });
  if (!isDeepStrictEqual(before, after)) throw new StoreOpenError("the new URL must differ only in user and password");
}

// The parts before the `?` become `user`, `password`, `host`, `port` and `dbname`, which are empty if missing. Parameters
// after the `?` take precedence. A `+` is not decoded to a space. Refuses a repeated parameter, a `#`, and white space at
// the end, which are probably mistakes.
function readParameters(text: string): Parameters {
  const [matched, user, password, address, name, port, dbname, query = ""] = form.exec(text) ?? [];
  if (matched === undefined || /#|\s$/.test(text)) {
    throw new StoreOpenError(
      "the database URL must be postgres://user:password@host:port/database, with %40 for @, %2F for / and %23 for # in a password, and without a space at the end",
    );
  }
  const parameters = new Map<string, string>();
  for (const part of query.split("&").filter(Boolean)) {
    const equals = part.indexOf("=");
    if (equals <= 0) throw new StoreOpenError("each parameter in the database URL must be name=value");
    const key = decode(part.slice(0, equals));
    if (parameters.has(key)) throw new StoreOpenError(`the database URL sets ${key} twice`);
    parameters.set(key, decode(part.slice(equals + 1)));
  }
  const unknown = [...parameters.keys()].filter((key) => !Object.hasOwn(rules, key));
  if (unknown.length > 0) throw new StoreOpenError(`unsupported parameters in the database URL: ${unknown.join(", ")}`);
  for (const [key, value = ""] of Object.entries({ user, password, host: address ?? name, port, dbname })) {
    const decoded = decode(value);
    if (!parameters.has(key)) parameters.set(key, decoded);
  }
  if (parameters.get("port") === "") parameters.delete("port");
  for (const [key, value] of parameters) {
    const [accepts, requirement] = rules[key] ?? anyText;
    if (accepts(value)) continue;
    // If the URL has no user, the host and port may be a part of the password.
    const got = key === "host" || key === "port" ? "" : `, got ${JSON.stringify(value)}`;
    throw new StoreOpenError(`${key} in the database URL must be ${requirement}${got}`);
  }
  return parameters;
}

function decode(text: string): string {
  // A zero byte would end a parameter in the start-up message early, and begin another parameter.
  if (text.includes("\0") || text.includes("%00")) throw new StoreOpenError("the database URL must not contain %00");
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new StoreOpenError("the database URL has an invalid percent escape", { cause });
  }
}

// Returns the same database as pg would. Does not import pg, because loading pg would slow down the start of a server
// with SQLite by 10 %.
function databaseNameOf(parameters: Parameters): string {
  const { PGDATABASE, PGUSER, USER, USERNAME } = process.env;
  return parameters.get("dbname") || PGDATABASE || parameters.get("user") || PGUSER || USER || USERNAME || "";
}

function clientOptionsOf(parameters: Parameters): Omit<ClientOptions, "ssl"> {
  const [user, password, database, options] = ["user", "password", "dbname", "options"].map((n) => parameters.get(n));
  const channelBinding = parameters.get("channel_binding") ?? "disable";
  return {
    host: parameters.get("host") || "localhost",
    port: Number(parameters.get("port") ?? 5_432),
    // node-postgres reads the defaults from PGUSER, PGPASSWORD and PGDATABASE, as libpq does.
    ...(database && { database }),
    ...(user && { user }),
    ...(password && { password }),
    ...(options && { options }),
    application_name: parameters.get("application_name") ?? "plantstore",
    connectionTimeoutMillis: 1_000 * Number(parameters.get("connect_timeout") ?? 5),
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    enableChannelBinding: channelBinding !== "disable",
    requiresChannelBinding: channelBinding === "require",
  };
}

/**
 * Reads the settings in a database URL's `options`, which are `-c name=value` or `--name=value`. The last value of a
 * setting is used (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-OPTIONS). Ignores other switches.
 *
 * @throws StoreOpenError if a word is not a setting, a switch or Neon's `endpoint=`
 */
function readServerSettings(options: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  // Spaces separate words. A backslash escapes any character. The word after `-c` belongs to `-c`.
  for (const escaped of options.match(/(?:-c\s+)?(?:\\.|[^\s\\])+/gs) ?? []) {
    const word = escaped.replaceAll(/\\(.)/gs, "$1");
    const [, name, value = ""] = /^(?:-c\s*|--)([^\s=-][^\s=]*)=(.*)$/s.exec(word) ?? [];
    if (name !== undefined) settings.set(name.replaceAll("-", "_").toLowerCase(), value);
    else if (!/^(?:-[abd-z]|endpoint=)/i.test(word)) {
      throw new StoreOpenError(
        `options in the database URL must consist of -c name=value, --name=value and switches such as -e, got ${JSON.stringify(word)}`,
      );
    }
  }
  return settings;
}

/** Returns the error for a setting that a pooler did not pass to the server. */
export function droppedSetting(name: string): StoreOpenError {
  return new StoreOpenError(
    `the options in the database URL set ${name}, but the server did not get this setting, probably because of a ` +
      `connection pooler: set it for the role (ALTER ROLE … SET ${name} = …), or connect to the server directly`,
  );
}

/** Texts in PEM, or the paths of their files, by TLS option. */
type PemFiles = { [Option in "ca" | "cert" | "key"]?: string };

/**
 * Reads `sslmode`, `ssl`, `sslrootcert`, `sslcert` and `sslkey`. With a certificate, `sslmode` defaults to `require`,
 * so that the password is not sent in cleartext, and with `sslrootcert=system` to `verify-full`, as in libpq. Has no
 * paths if no connection uses TLS.
 */
function readTls(parameters: Parameters): { readonly mode: string; readonly paths: PemFiles } {
  const [sslmode, ssl, ca, cert, key] = ["sslmode", "ssl", "sslrootcert", "sslcert", "sslkey"].map((name) =>
    parameters.get(name),
  );
  if (ssl !== undefined && (sslmode === "disable" || sslmode === "prefer"))
    throw new StoreOpenError(`ssl=true in the database URL contradicts sslmode=${sslmode}`);
  if ((cert === undefined) !== (key === undefined))
    throw new StoreOpenError("sslcert and sslkey in the database URL must be set together");
  const trustsSystem = ca === "system";
  const byDefault = trustsSystem ? "verify-full" : (ca ?? cert) === undefined ? "prefer" : "require";
  const mode = sslmode ?? (ssl === undefined ? byDefault : "require");
  if (trustsSystem && mode !== "verify-full") {
    throw new StoreOpenError(
      `sslrootcert=system in the database URL requires sslmode=verify-full, got ${sslmode ?? "ssl=true"}`,
    );
  }
  if (mode === "disable" || parameters.get("host")?.startsWith("/") === true) return { mode, paths: {} };
  // Without a file, Node.js trusts its bundled authorities. NODE_USE_SYSTEM_CA=1 adds the system's authorities.
  const authorities = ca === undefined || trustsSystem ? {} : { ca };
  return { mode, paths: { ...authorities, ...(cert !== undefined && key !== undefined && { cert, key }) } };
}

/** The TLS options for connecting to a host, in order (postgresql.org/docs/current/libpq-ssl.html, table 34.1). */
function tlsAttemptsOf(host: string, mode: string, files: PemFiles): readonly (false | ConnectionOptions)[] {
  // Servers do not offer TLS on Unix sockets.
  if (mode === "disable" || host.startsWith("/")) return [false];
  const unverified = { ...files, rejectUnauthorized: false };
  if (mode === "prefer") return [unverified, false];
  // If there is a root certificate, `require` checks the signature, as in libpq.
  if (mode === "require" && files.ca === undefined) return [unverified];
  // Passes the host explicitly. node-postgres does not pass the host to TLS, and TLS would expect "localhost". Loads the
  // module on demand, because not all settings use TLS.
  const checkServerIdentity = (_: string, peer: PeerCertificate): Error | undefined =>
    mode === "verify-full" ? process.getBuiltinModule("node:tls").checkServerIdentity(host, peer) : undefined;
  return [{ ...files, rejectUnauthorized: true, checkServerIdentity }];
}

/** The certificate files in a database URL, read again for each connection, because certificates are rotated. */
class DatabaseCertificateFiles {
  readonly #paths: PemFiles;
  #files: PemFiles = {};
  #pair: KeyPair | undefined;

  /** Reads the files, as {@link read}. */
  constructor(paths: PemFiles) {
    this.#paths = paths;
    this.read();
  }

  get paths(): readonly string[] {
    return Object.values(this.#paths);
  }

  /** The files' current contents, or the previous contents if the current contents are unusable. */
  get current(): PemFiles {
    try {
      this.read();
    } catch (fault) {
      if (!(fault instanceof StoreOpenError)) throw fault;
    }
    return this.#files;
  }

  /**
   * Reads the files again.
   *
   * @throws StoreOpenError if a file cannot be read or is invalid, if the key does not belong to the certificate, or if
   * an expired or future certificate would replace a valid one. The previous contents are then kept
   */
  read(): void {
    const files: PemFiles = Object.fromEntries(
      Object.entries(this.#paths).map(([option, path]) => [option, readDatabasePem(path)]),
    );
    // Does not parse unchanged files, because parsing takes a hundred times as long as reading.
    if (isDeepStrictEqual(files, this.#files)) return;
    const { ca, cert, key } = this.#paths;
    if (files.ca !== undefined) orRefuse([ca], () => checkAuthorities(files.ca, this.#files.ca));
    const { cert: chain, key: privateKey } = files;
    if (chain !== undefined && privateKey !== undefined)
      this.#pair = orRefuse([cert, key], () => readKeyPair(chain, privateKey, this.#pair));
    this.#files = files;
  }
}

function readDatabasePem(path: string): string {
  return orRefuse([path], () => readRegularFileSync(path, maxPemBytes).toString("utf8"));
}

function orRefuse<Result>(paths: readonly (string | undefined)[], read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    const [reason, names] = [cause instanceof Error ? cause.message : String(cause), paths.join(" and ")];
    throw new StoreOpenError(`cannot use ${names}, which is named in the database URL: ${reason}`, { cause });
  }
}

/** Refuses a text without certificates. While the current authorities are valid, refuses expired or future ones. */
function checkAuthorities(text = "", current = ""): void {
  if (parseCertificates(text).length === 0) throw new Error("the file must contain certificates in PEM");
  if (!hasValid(text) && hasValid(current)) throw new Error("no certificate is valid at this time");
}

function hasValid(pem: string): boolean {
  return parseCertificates(pem).some((certificate) => validityProblem(certificate) === undefined);
}
