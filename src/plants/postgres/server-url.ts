import { readFileSync } from "node:fs";
import { checkServerIdentity } from "node:tls";
import type { ClientConfig } from "pg";
import { StoreOpenError } from "../errors.ts";

/** A PostgreSQL server, as a URL names it: one host, or several of which one is the primary. */
export interface Server {
  /** For operators: hosts, port and database, without user and password. */
  readonly name: string;
  readonly hosts: readonly Host[];
}

/** One host of a server. */
export interface Host {
  /** The ways to connect, in the order in which they are tried (libpq's `sslmode`). */
  readonly ways: readonly ClientConfig[];
}

type Tls = ClientConfig["ssl"];

// libpq's default port.
const portDefault = "5432";

// Milliseconds of silence after which the network is asked whether the server is still there. An import or export
// has no other time-out; the system would ask after two hours.
const keepAliveMs = 10_000;

const parameters: ReadonlySet<string> = new Set([
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "host",
  "port",
  "user",
  "password",
  "application_name",
  "options",
  "target_session_attrs",
]);

/**
 * Reads `postgres://user:password@host:port/database?parameters` as libpq does. Parameters: `sslmode`
 * (`disable`, `allow`, `prefer`, `require`, `verify-ca`, `verify-full`; default `prefer`), `sslrootcert`,
 * `sslcert`, `sslkey`, `host` (a folder holds a Unix socket), `port`, `user`, `password`, `application_name`
 * and `options`.
 *
 * Several hosts are separated by commas; the one that can be written is used. `target_session_attrs` may say so,
 * as `read-write` or `primary`.
 *
 * @throws StoreOpenError naming the part that cannot be understood, and never the password
 */
export function readServerUrl(text: string): Server {
  const url = URL.parse(text);
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    throw new StoreOpenError("the database URL must be postgres://user:password@host:port/database");
  }
  checkParameters(url.searchParams);
  const hostNames = (url.searchParams.get("host") ?? (decode(url.hostname) || "localhost")).split(",");
  // In a list of libpq's the port in this place would be that of the last host alone.
  if (hostNames.length > 1 && url.port !== "") {
    throw new StoreOpenError("in the database URL, the port of several hosts is the parameter port");
  }
  const port = url.searchParams.get("port") ?? (url.port || portDefault);
  const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: keepAliveMs };
  const shared = { ...credentialsOf(url), port: Number(port), ...keepAlive };
  return {
    name: `${hostNames.join(",")}:${port}${url.pathname}`,
    hosts: hostNames.map((name) => readHost(name, url.searchParams, shared)),
  };
}

function checkParameters(search: URLSearchParams): void {
  const unknown = [...search.keys()].filter((name) => !parameters.has(name));
  if (unknown.length > 0) throw new StoreOpenError(`unknown in the database URL: ${unknown.join(", ")}`);
  const target = search.get("target_session_attrs") ?? "read-write";
  if (target === "read-write" || target === "primary") return;
  throw new StoreOpenError("target_session_attrs in the database URL must be read-write: plants are deleted there");
}

// What is left out is taken from the environment, as libpq does: PGUSER, PGPASSWORD, PGDATABASE.
function credentialsOf(url: URL): ClientConfig {
  const user = url.searchParams.get("user") ?? decode(url.username);
  const password = url.searchParams.get("password") ?? decode(url.password);
  const database = decode(url.pathname.slice(1));
  const options = url.searchParams.get("options");
  return {
    ...(database && { database }),
    ...(user && { user }),
    ...(password && { password }),
    ...(options && { options }),
    application_name: url.searchParams.get("application_name") ?? "plantstore",
  };
}

function readHost(name: string, search: URLSearchParams, shared: ClientConfig): Host {
  // "[::1]" is "::1" to a socket.
  const host = name.replace(/^\[(.*)\]$/, "$1");
  // A Unix socket needs no TLS, and the server offers none there.
  const tls = host.startsWith("/") ? [false] : tlsOf(search, host);
  return { ways: tls.map((ssl) => ({ ...shared, host, ssl })) };
}

// postgresql.org/docs/current/libpq-ssl.html, table 34.1.
function tlsOf(search: URLSearchParams, host: string): readonly Tls[] {
  const ca = readPem(search.get("sslrootcert"));
  const cert = readPem(search.get("sslcert"));
  const key = readPem(search.get("sslkey"));
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  const unverified = { ...files, rejectUnauthorized: false };
  const ofTheAuthority = { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  const mode = search.get("sslmode") ?? "prefer";
  switch (mode) {
    case "disable":
      return [false];
    case "allow":
      return [false, unverified];
    case "prefer":
      return [unverified, false];
    case "require":
      // As libpq does: with an authority at hand, its signature is demanded.
      return [ca ? ofTheAuthority : unverified];
    case "verify-ca":
      return [ofTheAuthority];
    case "verify-full":
      // Said in full: the client names no address to TLS, which would then look for "localhost" in the certificate.
      return [
        { ...files, rejectUnauthorized: true, checkServerIdentity: (_, peer) => checkServerIdentity(host, peer) },
      ];
    default:
      throw new StoreOpenError(`sslmode in the database URL must not be ${JSON.stringify(mode)}`);
  }
}

function readPem(path: string | null): string | undefined {
  // "system" is libpq's word for the authorities that the system trusts; those are the default here.
  if (path === null || path === "system") return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (fault) {
    throw new StoreOpenError(`cannot read ${path}, which the database URL names`, { cause: fault });
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    throw new StoreOpenError("the database URL has a bad percent escape", { cause: fault });
  }
}
