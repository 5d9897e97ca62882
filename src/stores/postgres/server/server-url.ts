import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { StoreOpenError } from "../../store-open-error.ts";
import { readSettings } from "./asked-settings.ts";
import { parseUrl } from "./parse-url.ts";

/** The server that a URL names: one host, or several of which one is the primary. */
export interface Server {
  /** Hosts, ports and database, without user and password, for operators. */
  readonly name: string;
  /** The hosts, which are read again for each connection. */
  readonly hosts: readonly Host[];
  /** Whether a host that is read-only is passed over. */
  readonly mustBeWritable: boolean;
  /** The settings that its `options` ask the server for, by name. */
  readonly settings: ReadonlyMap<string, string>;
}

/** One host of a server. */
export interface Host {
  /** The ways to connect, in the order in which they are tried (`sslmode` of libpq). */
  readonly ways: readonly Way[];
  /** How long connecting may take, in milliseconds, for each way. */
  readonly connectTimeoutMs: number;
}

/** A way to connect, as pg's client takes it. Declared here, because programs need not have the types of pg. */
export interface Way {
  readonly host: string;
  readonly port: number;
  readonly ssl: boolean | ConnectionOptions;
  readonly database?: string;
  readonly user?: string;
  readonly password?: string;
  readonly options?: string;
  readonly application_name: string;
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelayMillis: number;
  readonly enableChannelBinding: boolean;
}

type Tls = Way["ssl"];
type Parameters = ReadonlyMap<string, string>;

// libpq's default port.
const portDefault = "5432";

// In seconds. A server that is up answers within a hundredth; a network that drops packets never does.
const connectTimeoutSDefault = 5;

// In seconds. A host that takes longer is of no use to callers that wait. So 0, which is no limit in libpq, is refused:
// a host that takes connections and says nothing would keep the others from being tried.
const connectTimeoutSMax = 60;

// Milliseconds of silence before TCP checks whether the server is still there. Imports and exports have no other
// timeout, and by default systems check after two hours.
const keepAliveMs = 10_000;

const supported: ReadonlySet<string> = new Set([
  "application_name",
  "channel_binding",
  "connect_timeout",
  "dbname",
  "host",
  "options",
  "password",
  "port",
  "ssl",
  "sslcert",
  "sslkey",
  "sslmode",
  "sslrootcert",
  "target_session_attrs",
  "user",
]);

/**
 * Reads `postgres://user:password@host:port/database?parameters` as libpq does. docs/explanation/storage.md lists the parameters;
 * one that is not supported is refused, since it might be there for safety.
 *
 * Several hosts are separated by commas; the writable one is used. `target_session_attrs` may say the same, as
 * `read-write` or `primary`, or that `any` will do.
 *
 * @throws StoreOpenError naming the part that is wrong, and never the password
 */
export function readServerUrl(text: string): Server {
  const parameters = parseUrl(text);
  const unknown = [...parameters.keys()].filter((name) => !supported.has(name));
  if (unknown.length > 0) throw new StoreOpenError(`unsupported parameters in the database URL: ${unknown.join(", ")}`);
  const target = readWord(parameters, "target_session_attrs", ["any", "read-write", "primary"]);
  const hosts = hostsOf(parameters);
  const shared = sharedBy(parameters);
  const connectTimeoutMs = 1_000 * readConnectTimeoutS(parameters);
  const names = hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
  return {
    name: `${names.join()}/${parameters.get("dbname")}`,
    mustBeWritable: target === undefined ? hosts.length > 1 : target !== "any",
    settings: readSettings(shared.options ?? ""),
    hosts: hosts.map(({ host, port }) => ({
      ways: waysTo(host, parameters).map((ssl) => ({ ...shared, host, port, ssl })),
      connectTimeoutMs,
    })),
  };
}

/** Returns the hosts with their ports. A single port is that of all hosts. */
function hostsOf(parameters: Parameters): readonly Pick<Way, "host" | "port">[] {
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

/** Returns what the ways to all hosts have in common. */
function sharedBy(parameters: Parameters): Omit<Way, "host" | "port" | "ssl"> {
  const [user, password, database, options] = ["user", "password", "dbname", "options"].map((name) =>
    parameters.get(name),
  );
  return {
    // Missing parts come from the environment, as with libpq: PGUSER, PGPASSWORD, PGDATABASE.
    ...(database && { database }),
    ...(user && { user }),
    ...(password && { password }),
    ...(options && { options }),
    application_name: parameters.get("application_name") ?? "plantstore",
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    // `require` is refused: the client would silently go on without channel binding.
    enableChannelBinding: readWord(parameters, "channel_binding", ["disable", "prefer"]) === "prefer",
  };
}

function readConnectTimeoutS(parameters: Parameters): number {
  const text = parameters.get("connect_timeout") ?? String(connectTimeoutSDefault);
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= connectTimeoutSMax) return seconds;
  throw new StoreOpenError(`connect_timeout in the database URL must be an integer between 1 and ${connectTimeoutSMax}, in seconds`);
}

function readWord(parameters: Parameters, name: string, words: readonly string[]): string | undefined {
  const word = parameters.get(name);
  if (word === undefined || words.includes(word)) return word;
  // Made only here: the first thing of Intl takes 15 ms.
  const oneOf = new Intl.ListFormat("en-GB", { type: "disjunction" });
  throw new StoreOpenError(`${name} in the database URL must be ${words.length > 2 ? "one of " : ""}${oneOf.format(words)}`);
}

// A Unix socket needs no TLS, and the server does not offer it there.
function waysTo(host: string, parameters: Parameters): readonly Tls[] {
  return host.startsWith("/") ? [false] : tlsOf(parameters, host);
}

// postgresql.org/docs/current/libpq-ssl.html, table 34.1.
function tlsOf(parameters: Parameters, host: string): readonly Tls[] {
  const ca = readPem(parameters.get("sslrootcert"));
  const cert = readPem(parameters.get("sslcert"));
  const key = readPem(parameters.get("sslkey"));
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  const unverified = { ...files, rejectUnauthorized: false };
  const ofTheAuthority = { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  const mode = parameters.get("sslmode") ?? (parameters.get("ssl") === "true" ? "require" : "prefer");
  switch (mode) {
    case "disable":
      return [false];
    case "prefer":
      return [unverified, false];
    case "require":
      // As in libpq: if there is a root certificate, the signature is checked.
      return [ca ? ofTheAuthority : unverified];
    case "verify-ca":
      return [ofTheAuthority];
    case "verify-full":
      // Explicit, because the client gives TLS no host name, and TLS would then expect "localhost" in the certificate.
      return [
        { ...files, rejectUnauthorized: true, checkServerIdentity: (_, peer) => tls().checkServerIdentity(host, peer) },
      ];
    default:
      throw new StoreOpenError(`sslmode in the database URL must be one of disable, prefer, require, verify-ca or verify-full, got ${JSON.stringify(mode)}`);
  }
}

function readPem(path: string | undefined): string | undefined {
  // "system" is libpq's name for the authorities of the system, which are the default here.
  if (path === undefined || path === "system") return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (fault) {
    throw new StoreOpenError(`cannot read ${path}, which the database URL names`, { cause: fault });
  }
}

// Loaded on demand, like every use of TLS: settings are read before it is known whether they use any.
function tls(): typeof import("node:tls") {
  return process.getBuiltinModule("node:tls");
}
