import { integer, oneOf, publicUrl, text } from "@protoport/command-line/settings";
import { maxDrainMs, drainTimesDefault } from "@protoport/gateway/health";
import { type LogLevel, logLevels, type RequestIdResponses } from "@protoport/telemetry/logs";
import type { PostgresLocation, StoreLocation } from "../stores/index.ts";
import { valueOrThrow } from "./configuration-error.ts";
import { readDatabaseUrl, readDatabaseUrlFile, showDatabaseUrl } from "./database-url.ts";
import { type CredentialConfiguration, credentialSettings } from "./credential-settings.ts";
import {
  type AdminAddress,
  addresses,
  adminAddressType,
  corsOrigins,
  fileMode,
  hostType,
  type PlantSetting,
  type PlantSettings,
  readableFile,
} from "./setting-types.ts";

/** The validated configuration. */
export interface Configuration extends CredentialConfiguration {
  readonly host: string;
  readonly port: number;
  /** The Unix socket's file mode, in octal digits. */
  readonly socketMode: string;
  readonly workers: number;
  readonly maxConnectionAgeMs: number | undefined;
  readonly maxConnectionAgeGraceMs: number | undefined;
  /** The store from `DATABASE_URL`, or from `databaseUrlFile` if `DATABASE_URL` is not set. */
  readonly database: StoreLocation;
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
const maxWorkers = 256;

/** Maximum connection age, in milliseconds: a year. A longer age would have no effect. */
const maxConnectionAgeMs = 31_536_000_000;

/** Maximum rate, in calls per second. A process cannot serve a higher rate. */
const maxCallsPerSecond = 1_000_000;

/** Maximum retention time, in hours: a century, for operators who keep records permanently. */
const maxRetentionHours = 876_000;

/** The values of the settings, before `DATABASE_URL_FILE` replaces a missing `DATABASE_URL`. */
export interface SettingValues extends Omit<Configuration, "database"> {
  readonly database: StoreLocation | undefined;
}

/** The settings table. `--help`, docs/reference/configuration.md and the configuration are derived from the table. */
export const settings: PlantSettings<SettingValues> = {
  host: {
    title: "Address and processes",
    variable: "HOST",
    about: "address to listen on, or unix:<path> for a Unix socket",
    fallback: "127.0.0.1",
    type: hostType,
  },
  port: {
    variable: "PORT",
    about: "TCP port of all protocols; 0 picks a free port; ignored with a Unix socket",
    fallback: 8080,
    type: integer(0, 65_535),
  },
  socketMode: {
    variable: "PLANTSTORE_SOCKET_MODE",
    about: "file mode of the Unix socket, which controls who may connect",
    fallback: "660",
    type: fileMode,
  },
  workers: {
    variable: "PLANTSTORE_WORKERS",
    about: "number of processes that share the port; more than 1 requires postgres://",
    fallback: 1,
    type: integer(1, maxWorkers),
  },
  maxConnectionAgeMs: {
    variable: "PLANTSTORE_MAX_CONNECTION_AGE_MS",
    about: "milliseconds after which a connection is closed, ±10 %, so that clients spread over servers; default never",
    type: integer(1, maxConnectionAgeMs),
  },
  maxConnectionAgeGraceMs: {
    variable: "PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS",
    about: "milliseconds that running calls may take after the maximum age; default unlimited",
    type: integer(1, maxConnectionAgeMs),
  },
  database: {
    title: "Plants",
    variable: "DATABASE_URL",
    about: "where plants are stored: sqlite:<file>, postgres://…, or memory: (loopback only)",
    secret: showDatabaseUrl,
    type: text("URL", (url) => valueOrThrow(readDatabaseUrl(url), "must ")),
  },
  databaseUrlFile: {
    variable: "DATABASE_URL_FILE",
    about: "file with a postgres:// URL, instead of DATABASE_URL; reloaded when it changes",
    type: text("path", (path) => valueOrThrow(readDatabaseUrlFile(path), "must ")),
  },
  deletionsKeptHours: {
    variable: "PLANTSTORE_DELETIONS_KEPT_HOURS",
    about: "hours that deletion records are kept",
    fallback: 2160,
    type: integer(1, maxRetentionHours),
  },
  ...credentialSettings,
  publicUrl: {
    title: "Public URL, docs page, CORS and tools",
    variable: "PLANTSTORE_PUBLIC_URL",
    about: "base URL for clients; its path is the prefix of all paths",
    type: publicUrl,
  },
  docs: {
    variable: "PLANTSTORE_DOCS",
    about: "access to /docs and /openapi.json: open (to everyone) or closed (a credential is required)",
    fallback: "closed",
    type: oneOf(["open", "closed"]),
  },
  corsOrigins: {
    variable: "PLANTSTORE_CORS_ORIGINS",
    about: "origins whose pages may send requests from a browser, separated by commas, or * for all",
    type: corsOrigins,
  },
  mcp: {
    variable: "PLANTSTORE_MCP",
    about:
      "whether AI agents with a credential can call the RPCs at /mcp, as tools of the Model Context Protocol: on or off",
    fallback: "off",
    type: oneOf(["on", "off"]),
  },
  trustedProxies: {
    title: "Proxies",
    variable: "PLANTSTORE_TRUSTED_PROXIES",
    about: "IP addresses and networks of trusted proxies, separated by commas; unix: trusts proxies on the Unix socket",
    type: addresses,
  },
  proxyFields: {
    variable: "PLANTSTORE_PROXY_FIELDS",
    about:
      "header fields in which proxies send the client's address: x-forwarded, forwarded (RFC 7239) or none; default none with the PROXY protocol, otherwise x-forwarded",
    type: oneOf(["x-forwarded", "forwarded", "none"]),
  },
  proxyProtocol: {
    variable: "PLANTSTORE_PROXY_PROTOCOL",
    about: "whether proxies use the PROXY protocol, version 1 or 2: on or off",
    fallback: "off",
    type: oneOf(["on", "off"]),
  },
  ratePerPrincipal: {
    title: "Rates",
    variable: "PLANTSTORE_RATE_PER_PRINCIPAL",
    about: "calls per second of each caller, and the size of a burst; default unlimited",
    type: integer(1, maxCallsPerSecond),
  },
  ratePerAddress: {
    variable: "PLANTSTORE_RATE_PER_ADDRESS",
    about: "calls per second of each IP address or IPv6 /64 network, and the size of a burst; default unlimited",
    type: integer(1, maxCallsPerSecond),
  },
  tlsCertFile: {
    title: "TLS",
    variable: "TLS_CERT_FILE",
    about: "PEM file with the certificate chain; TLS_KEY_FILE is required too",
    type: readableFile,
  },
  tlsKeyFile: {
    variable: "TLS_KEY_FILE",
    about: "PEM file with the private key; TLS_CERT_FILE is required too",
    type: readableFile,
  },
  requestIdResponses: {
    title: "Request ids and logs",
    variable: "PLANTSTORE_REQUEST_ID_RESPONSES",
    about:
      "which responses have x-request-id: always (all), or requested (errors, streams, and responses to requests that sent one)",
    fallback: "requested",
    type: oneOf(["requested", "always"]),
  },
  logLevel: {
    variable: "LOG_LEVEL",
    about: `lowest level that is logged: ${logLevels.join(", ")}`,
    fallback: "info",
    type: oneOf(logLevels),
  },
  audit: {
    variable: "PLANTSTORE_AUDIT",
    about:
      "values of LOG_LEVEL with which refused credentials and deletions are logged: always (all but silent) or by-level (info and lower)",
    fallback: "always",
    type: oneOf(["always", "by-level"]),
  },
  logProbes: {
    variable: "PLANTSTORE_LOG_PROBES",
    about: "whether probes and gRPC health checks are logged: on or off",
    fallback: "on",
    type: oneOf(["on", "off"]),
  },
  drainDelayMs: {
    title: "Shutdown and metrics",
    variable: "PLANTSTORE_DRAIN_DELAY_MS",
    about: "milliseconds to keep serving after readiness has turned off",
    fallback: drainTimesDefault.delayMs,
    type: integer(0, maxDrainMs),
  },
  drainTimeoutMs: {
    variable: "PLANTSTORE_DRAIN_TIMEOUT_MS",
    about: "milliseconds that running calls may take after the delay",
    fallback: drainTimesDefault.timeoutMs,
    type: integer(0, maxDrainMs),
  },
  adminAddress: {
    variable: "PLANTSTORE_ADMIN_ADDRESS",
    about:
      "port, host:port, or unix:<path>, that serves /metrics and /problems without a credential; the default host is 127.0.0.1",
    type: adminAddressType,
  },
};

interface SettingGroup {
  readonly title: string;
  readonly settings: readonly PlantSetting[];
}

/** All settings by group, in table order. */
export const settingGroups: readonly SettingGroup[] = settingGroupsOf(Object.values(settings));

function settingGroupsOf(all: readonly PlantSetting[]): SettingGroup[] {
  const starts = all.flatMap(({ title }, index) => (title === undefined && index > 0 ? [] : [index]));
  return starts.map((start, n) => ({
    title: all[start]?.title ?? "Settings",
    settings: all.slice(start, starts[n + 1]),
  }));
}
