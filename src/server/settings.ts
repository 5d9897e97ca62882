import { drainMsMax, drainTimesDefault } from "@plantstore/gateway/health";
import { type LogLevel, logLevels, type RequestIdResponses } from "@plantstore/telemetry/logs";
import type { PostgresLocation } from "../stores/index.ts";
import { type Database, readDatabaseUrl, readDatabaseUrlFile, showDatabaseUrl } from "./database-url.ts";
import { type CredentialConfiguration, credentialSettings } from "./credential-settings.ts";
import type { HttpEngineName } from "./http-engine.ts";
import {
  type AdminAddress,
  oneOf,
  readableFile,
  readAddresses,
  readAdminAddress,
  readCorsOrigins,
  readFileMode,
  readHost,
  readPublicUrl,
  type Setting,
  integerBetween,
} from "./setting-readers.ts";

/** The validated configuration. */
export interface Configuration extends CredentialConfiguration {
  readonly host: string;
  readonly port: number;
  readonly socketMode: number;
  readonly workers: number;
  readonly maxConnectionAgeMs: number | undefined;
  readonly maxConnectionAgeGraceMs: number | undefined;
  readonly httpEngine: HttpEngineName;
  /** The store from `DATABASE_URL`, or from `databaseUrlFile` if `DATABASE_URL` is not set. */
  readonly database: Database;
  readonly databaseUrlFile: PostgresLocation | undefined;
  readonly deletionsKeptHours: number;
  readonly publicUrl: URL | undefined;
  readonly docs: "open" | "closed";
  readonly corsOrigins: readonly string[] | "*" | undefined;
  readonly mcp: "on" | "off";
  readonly trustedProxies: readonly string[] | undefined;
  readonly proxyFields: "x-forwarded" | "forwarded" | "none" | undefined;
  readonly proxyProtocol: "on" | "off";
  readonly ratePerPrincipal: number | undefined;
  readonly ratePerAddress: number | undefined;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly requestIdResponses: RequestIdResponses;
  readonly logLevel: LogLevel;
  readonly audit: "always" | "by-level";
  readonly logProbes: "on" | "off";
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly adminAddress: AdminAddress | undefined;
}

/** Maximum number of workers. Machines have fewer cores, and a typing error must not exhaust the machine. */
const workersMax = 256;

/** Maximum connection age, in milliseconds: a year. A longer age would have no effect. */
const connectionAgeMsMax = 31_536_000_000;

/** Maximum rate, in calls per second. A process cannot serve a higher rate. */
const callsPerSecondMax = 1_000_000;

/** Maximum retention time, in hours: a century, for operators who keep records permanently. */
const retentionHoursMax = 876_000;

/** The settings table. `--help`, docs/reference/configuration.md and the configuration are derived from the table. */
export const settings: { readonly [Key in keyof Configuration]: Setting<NonNullable<Configuration[Key]>> } = {
  host: {
    title: "Address and processes",
    variable: "HOST",
    help: "address to listen on, or unix:<path> for a Unix socket",
    fallback: "127.0.0.1",
    read: readHost,
  },
  port: {
    variable: "PORT",
    help: "TCP port of all protocols; 0 picks a free port; ignored with a Unix socket",
    fallback: "8080",
    read: integerBetween(0, 65_535),
  },
  socketMode: {
    variable: "PLANTSTORE_SOCKET_MODE",
    help: "file mode of the Unix socket, which controls who may connect",
    fallback: "660",
    read: readFileMode,
  },
  workers: {
    variable: "PLANTSTORE_WORKERS",
    help: "number of processes that share the port; more than 1 requires postgres://",
    fallback: "1",
    read: integerBetween(1, workersMax),
  },
  maxConnectionAgeMs: {
    variable: "PLANTSTORE_MAX_CONNECTION_AGE_MS",
    help: "milliseconds after which a connection is closed, ±10 %, so that clients spread over servers; default never",
    read: integerBetween(1, connectionAgeMsMax, "milliseconds"),
  },
  maxConnectionAgeGraceMs: {
    variable: "PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS",
    help: "milliseconds that running calls may take after the maximum age; default unlimited",
    read: integerBetween(1, connectionAgeMsMax, "milliseconds"),
  },
  httpEngine: {
    variable: "PLANTSTORE_HTTP_ENGINE",
    help: "HTTP implementation: plantstore (@plantstore/http-engine), or node (node:http and node:http2)",
    fallback: "plantstore",
    read: oneOf(["plantstore", "node"]),
  },
  database: {
    title: "Plants",
    variable: "DATABASE_URL",
    help: "where plants are stored: sqlite:<file>, postgres://…, or memory: (loopback only)",
    secret: showDatabaseUrl,
    read: readDatabaseUrl,
  },
  databaseUrlFile: {
    variable: "DATABASE_URL_FILE",
    help: "file with a postgres:// URL, instead of DATABASE_URL; reloaded when it changes",
    read: readDatabaseUrlFile,
  },
  deletionsKeptHours: {
    variable: "PLANTSTORE_DELETIONS_KEPT_HOURS",
    help: "hours that deletion records are kept; those without an idempotency key up to a day longer on PostgreSQL",
    fallback: "2160",
    read: integerBetween(1, retentionHoursMax, "hours"),
  },
  ...credentialSettings,
  publicUrl: {
    title: "Public URL, docs page, CORS and tools",
    variable: "PLANTSTORE_PUBLIC_URL",
    help: "base URL for clients; its path is the prefix of all paths",
    read: readPublicUrl,
  },
  docs: {
    variable: "PLANTSTORE_DOCS",
    help: "access to /docs and /openapi.json: open (to everyone) or closed (a credential is required)",
    fallback: "closed",
    read: oneOf(["open", "closed"]),
  },
  corsOrigins: {
    variable: "PLANTSTORE_CORS_ORIGINS",
    help: "origins whose pages may send requests from a browser, separated by commas, or * for all",
    read: readCorsOrigins,
  },
  mcp: {
    variable: "PLANTSTORE_MCP",
    help: "whether AI agents with a credential can call the RPCs at /mcp, as tools of the Model Context Protocol: on or off",
    fallback: "off",
    read: oneOf(["on", "off"]),
  },
  trustedProxies: {
    title: "Proxies",
    variable: "PLANTSTORE_TRUSTED_PROXIES",
    help: "IP addresses and networks of trusted proxies, separated by commas; unix: trusts proxies on the Unix socket",
    read: readAddresses,
  },
  proxyFields: {
    variable: "PLANTSTORE_PROXY_FIELDS",
    help: "header fields in which proxies send the client's address: x-forwarded, forwarded (RFC 7239) or none; default none with the PROXY protocol, otherwise x-forwarded",
    read: oneOf(["x-forwarded", "forwarded", "none"]),
  },
  proxyProtocol: {
    variable: "PLANTSTORE_PROXY_PROTOCOL",
    help: "whether proxies use the PROXY protocol, version 1 or 2: on or off",
    fallback: "off",
    read: oneOf(["on", "off"]),
  },
  ratePerPrincipal: {
    title: "Rates",
    variable: "PLANTSTORE_RATE_PER_PRINCIPAL",
    help: "calls per second of each caller, and the size of a burst; default unlimited",
    read: integerBetween(1, callsPerSecondMax, "calls per second"),
  },
  ratePerAddress: {
    variable: "PLANTSTORE_RATE_PER_ADDRESS",
    help: "calls per second of each IP address or IPv6 /64 network, and the size of a burst; default unlimited",
    read: integerBetween(1, callsPerSecondMax, "calls per second"),
  },
  tlsCertFile: {
    title: "TLS",
    variable: "TLS_CERT_FILE",
    help: "PEM file with the certificate chain; TLS_KEY_FILE is required too",
    read: readableFile,
  },
  tlsKeyFile: {
    variable: "TLS_KEY_FILE",
    help: "PEM file with the private key; TLS_CERT_FILE is required too",
    read: readableFile,
  },
  requestIdResponses: {
    title: "Request ids and logs",
    variable: "PLANTSTORE_REQUEST_ID_RESPONSES",
    help: "which responses have x-request-id: always (all), or requested (errors, streams, and responses to requests that sent one)",
    fallback: "requested",
    read: oneOf(["requested", "always"]),
  },
  logLevel: {
    variable: "LOG_LEVEL",
    help: `lowest level that is logged: ${logLevels.join(", ")}`,
    fallback: "info",
    read: oneOf(logLevels),
  },
  audit: {
    variable: "PLANTSTORE_AUDIT",
    help: "values of LOG_LEVEL with which refused credentials and deletions are logged: always (all but silent) or by-level (info and lower)",
    fallback: "always",
    read: oneOf(["always", "by-level"]),
  },
  logProbes: {
    variable: "PLANTSTORE_LOG_PROBES",
    help: "whether probes and gRPC health checks are logged: on or off",
    fallback: "on",
    read: oneOf(["on", "off"]),
  },
  drainDelayMs: {
    title: "Shutdown and metrics",
    variable: "PLANTSTORE_DRAIN_DELAY_MS",
    help: "milliseconds to keep serving after readiness has turned off",
    fallback: String(drainTimesDefault.delayMs),
    read: integerBetween(0, drainMsMax, "milliseconds"),
  },
  drainTimeoutMs: {
    variable: "PLANTSTORE_DRAIN_TIMEOUT_MS",
    help: "milliseconds that running calls may take after the delay",
    fallback: String(drainTimesDefault.timeoutMs),
    read: integerBetween(0, drainMsMax, "milliseconds"),
  },
  adminAddress: {
    variable: "PLANTSTORE_ADMIN_ADDRESS",
    help: "port, host:port, or unix:<path>, that serves /metrics and /problems without a credential; the default host is 127.0.0.1",
    read: readAdminAddress,
  },
};

/** A group of related settings. */
export interface SettingGroup {
  readonly title: string;
  readonly settings: readonly Setting<unknown>[];
}

/** All settings by group, in table order. */
export const settingGroups: readonly SettingGroup[] = groupsOf(Object.values(settings));

function groupsOf(all: readonly Setting<unknown>[]): SettingGroup[] {
  const starts = all.flatMap(({ title }, index) => (title === undefined && index > 0 ? [] : [index]));
  return starts.map((start, n) => ({
    title: all[start]?.title ?? "Settings",
    settings: all.slice(start, starts[n + 1]),
  }));
}
