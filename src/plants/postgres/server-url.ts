import { readFileSync } from "node:fs";
import { checkServerIdentity } from "node:tls";
import type { ClientConfig } from "pg";
import { StoreOpenError } from "../store-open-error.ts";

/** The server that a URL names: one host, or several of which one is the primary. */
export interface Server {
  /** Hosts, port and database, without user and password, for operators. */
  readonly name: string;
  readonly hosts: readonly Host[];
}

/** One host of a server. */
export interface Host {
  /** The ways to connect, in the order in which they are tried (`sslmode` of libpq). */
  readonly ways: readonly ClientConfig[];
}

type Tls = ClientConfig["ssl"];

// libpq's default port.
const portDefault = "5432";

// Milliseconds of silence before TCP checks whether the server is still there. Imports and exports have no other
// time-out, and by default the check would come after two hours.
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
 * Reads `postgres://user:password@host:port/database?parameters` as libpq does. Parameters: `sslmode` (`disable`,
 * `allow`, `prefer`, `require`, `verify-ca`, `verify-full`; default `prefer`), `sslrootcert`, `sslcert`, `sslkey`,
 * `host` (a folder contains a Unix socket), `port`, `user`, `password`, `application_name` and `options`.
 *
 * Several hosts are separated by commas; the writable one is used. `target_session_attrs` may say so, as `read-write`
 * or `primary`.
 *
 * @throws StoreOpenError naming the part that is wrong, and never the password
 */
export function readServerUrl(text: string): Server {
  const url = URL.parse(text);
  if (url?.protocol !== "postgres:" && url?.protocol !== "postgresql:") {
    throw new StoreOpenError("the database URL must be postgres://user:password@host:port/database");
  }
  checkParameters(url.searchParams);
  const hostNames = (url.searchParams.get("host") ?? (decode(url.hostname) || "localhost")).split(",");
  // In a list of hosts, libpq would apply the port in this position to the last host only.
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

// Missing parts come from the environment, as with libpq: PGUSER, PGPASSWORD, PGDATABASE.
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
  // A socket wants "::1", not "[::1]".
  const host = name.replace(/^\[(.*)\]$/, "$1");
  // A Unix socket needs no TLS, and the server does not offer it there.
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
      // As libpq does: if there is a root certificate, the signature is checked.
      return [ca ? ofTheAuthority : unverified];
    case "verify-ca":
      return [ofTheAuthority];
    case "verify-full":
      // Explicit, because the client gives TLS no host name, and TLS would then expect "localhost" in the certificate.
      return [
        { ...files, rejectUnauthorized: true, checkServerIdentity: (_, peer) => checkServerIdentity(host, peer) },
      ];
    default:
      throw new StoreOpenError(`sslmode in the database URL must not be ${JSON.stringify(mode)}`);
  }
}

function readPem(path: string | null): string | undefined {
  // "system" is the word of libpq for the authorities of the system, which are the default here.
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
