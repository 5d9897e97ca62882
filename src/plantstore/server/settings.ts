import { type LogLevel, logLevels, type RequestIdAnswers } from "../../operators/operations/index.ts";
import type { PostgresLocation } from "../plants/index.ts";
import { type Database, readDatabaseUrl, readDatabaseUrlFile, showDatabaseUrl } from "./database-url.ts";
import { type CredentialConfiguration, credentialSettings } from "./credential-settings.ts";
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
  wholeNumber,
} from "./setting-readers.ts";

/** The configuration, read and checked. */
export interface Configuration extends CredentialConfiguration {
  readonly host: string;
  readonly port: number;
  readonly socketMode: number;
  readonly workers: number;
  /** Where plants are stored, by `DATABASE_URL`, or without it by `databaseUrlFile`. */
  readonly database: Database;
  readonly databaseUrlFile: PostgresLocation | undefined;
  readonly deletionsKeptHours: number;
  readonly publicUrl: URL | undefined;
  readonly docs: "open" | "closed";
  readonly corsOrigins: readonly string[] | "*" | undefined;
  readonly trustedProxies: readonly string[] | undefined;
  readonly proxyFields: "x-forwarded" | "forwarded" | "none" | undefined;
  readonly proxyProtocol: "on" | "off";
  readonly ratePerPrincipal: number | undefined;
  readonly ratePerAddress: number | undefined;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly requestIdAnswers: RequestIdAnswers;
  readonly logLevel: LogLevel;
  readonly audit: "always" | "by-level";
  readonly probeLines: "on" | "off";
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly adminAddress: AdminAddress | undefined;
}

/** An hour: longer than any orchestrator waits, short enough to catch typing errors. */
const drainMsMax = 3_600_000;

/** More than any machine has cores, so that a typing error cannot exhaust it. */
const workersMax = 256;

/** More than a process serves: above it a limit limits nothing. */
const callsPerSecondMax = 1_000_000;

/** A century, for those who want to keep records forever. */
const deletionsKeptHoursMax = 876_000;

/** The table of settings, which `--help`, docs/configuration.md and the reader all follow. */
export const settings: { readonly [Key in keyof Configuration]: Setting<NonNullable<Configuration[Key]>> } = {
  host: {
    variable: "HOST",
    flag: "host",
    about: "address to listen on, or unix:<path> for a Unix socket",
    fallback: "127.0.0.1",
    read: readHost,
  },
  port: {
    variable: "PORT",
    flag: "port",
    about: "TCP port for every protocol; 0 takes a free one; not used with a Unix socket",
    fallback: "8080",
    read: wholeNumber(0, 65_535),
  },
  socketMode: {
    variable: "PLANTSTORE_SOCKET_MODE",
    flag: "socket-mode",
    about: "who may connect to a Unix socket: its mode",
    fallback: "660",
    read: readFileMode,
  },
  workers: {
    variable: "PLANTSTORE_WORKERS",
    flag: "workers",
    about: "processes that share the port; more than one with postgres:// only",
    fallback: "1",
    read: wholeNumber(1, workersMax),
  },
  database: {
    variable: "DATABASE_URL",
    flag: "database-url",
    about: "where plants are stored: sqlite:<file>, postgres://…, or memory: (loopback only)",
    secret: true,
    shown: showDatabaseUrl,
    read: readDatabaseUrl,
  },
  databaseUrlFile: {
    variable: "DATABASE_URL_FILE",
    flag: "database-url-file",
    about: "instead of it, a file with a postgres:// URL, which is read again for each connection",
    read: readDatabaseUrlFile,
  },
  deletionsKeptHours: {
    variable: "PLANTSTORE_DELETIONS_KEPT_HOURS",
    flag: "deletions-kept-hours",
    about: "how long deletion records are kept",
    fallback: "2160",
    read: wholeNumber(1, deletionsKeptHoursMax, "hours"),
  },
  ...credentialSettings,
  publicUrl: {
    variable: "PLANTSTORE_PUBLIC_URL",
    flag: "public-url",
    about: "base URL for clients; its path prefixes every path",
    read: readPublicUrl,
  },
  docs: {
    variable: "PLANTSTORE_DOCS",
    flag: "docs",
    about: "access to /docs and /openapi.json: open to everyone, or closed without a credential",
    fallback: "closed",
    read: oneOf(["open", "closed"]),
  },
  corsOrigins: {
    variable: "PLANTSTORE_CORS_ORIGINS",
    flag: "cors-origins",
    about: "origins whose pages may send requests from browsers, separated by commas, or *",
    read: readCorsOrigins,
  },
  trustedProxies: {
    variable: "PLANTSTORE_TRUSTED_PROXIES",
    flag: "trusted-proxies",
    about: "IP addresses and networks of proxies that say who the client is, and unix: for those on a Unix socket",
    read: readAddresses,
  },
  proxyFields: {
    variable: "PLANTSTORE_PROXY_FIELDS",
    flag: "proxy-fields",
    about:
      "the fields in which they say it: x-forwarded, forwarded (RFC 7239), or none; by default none with PROXY headers, else x-forwarded",
    read: oneOf(["x-forwarded", "forwarded", "none"]),
  },
  proxyProtocol: {
    variable: "PLANTSTORE_PROXY_PROTOCOL",
    flag: "proxy-protocol",
    about: "whether their connections begin with a PROXY header, version 1 or 2: on or off",
    fallback: "off",
    read: oneOf(["on", "off"]),
  },
  ratePerPrincipal: {
    variable: "PLANTSTORE_RATE_PER_PRINCIPAL",
    flag: "rate-per-principal",
    about: "calls a second that each caller may make, and as many at once",
    read: wholeNumber(1, callsPerSecondMax, "calls a second"),
  },
  ratePerAddress: {
    variable: "PLANTSTORE_RATE_PER_ADDRESS",
    flag: "rate-per-address",
    about: "calls a second that each IP address may make, and as many at once; an IPv6 /64 counts as one",
    read: wholeNumber(1, callsPerSecondMax, "calls a second"),
  },
  tlsCertFile: {
    variable: "TLS_CERT_FILE",
    flag: "tls-cert-file",
    about: "certificate chain in PEM; needs the key",
    read: readableFile,
  },
  tlsKeyFile: {
    variable: "TLS_KEY_FILE",
    flag: "tls-key-file",
    about: "private key in PEM; needs the certificate",
    read: readableFile,
  },
  requestIdAnswers: {
    variable: "PLANTSTORE_REQUEST_ID_ANSWERS",
    flag: "request-id-answers",
    about: "which answers carry x-request-id: always, or asked: errors, streams, and answers to requests that sent one",
    fallback: "asked",
    read: oneOf(["asked", "always"]),
  },
  logLevel: {
    variable: "LOG_LEVEL",
    flag: "log-level",
    about: `lowest level that is logged: ${logLevels.join(", ")}`,
    fallback: "info",
    read: oneOf(logLevels),
  },
  audit: {
    variable: "PLANTSTORE_AUDIT",
    flag: "audit",
    about: "when refused credentials and deletions are logged: always, except at silent; or by-level, as info",
    fallback: "always",
    read: oneOf(["always", "by-level"]),
  },
  probeLines: {
    variable: "PLANTSTORE_LOG_PROBES",
    flag: "log-probes",
    about: "whether probes and gRPC health checks have lines in the log: on, or off",
    fallback: "on",
    read: oneOf(["on", "off"]),
  },
  drainDelayMs: {
    variable: "PLANTSTORE_DRAIN_DELAY_MS",
    flag: "drain-delay-ms",
    about: "how long to keep serving after readiness went off",
    fallback: "5000",
    read: wholeNumber(0, drainMsMax, "milliseconds"),
  },
  drainTimeoutMs: {
    variable: "PLANTSTORE_DRAIN_TIMEOUT_MS",
    flag: "drain-timeout-ms",
    about: "how long running calls may take after that",
    fallback: "20000",
    read: wholeNumber(0, drainMsMax, "milliseconds"),
  },
  adminAddress: {
    variable: "PLANTSTORE_ADMIN_ADDRESS",
    flag: "admin-address",
    about: "port, or host:port, of /metrics, which needs no credential; the host is 127.0.0.1 by default",
    read: readAdminAddress,
  },
};
