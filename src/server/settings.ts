import { type LogLevel, logLevels } from "../operations/log.ts";
import { readCorsOrigins } from "./cors-origins.ts";
import { type Database, readDatabaseUrl } from "./database-url.ts";
import { type CredentialConfiguration, credentialSettings } from "./credential-settings.ts";
import { readPublicUrl } from "./public-url.ts";
import { bad, oneOf, readableFile, type Reading, type Setting, value, wholeNumber } from "./setting.ts";

/** Everything an operator decides, read and checked. */
export interface Configuration extends CredentialConfiguration {
  readonly host: string;
  readonly port: number;
  readonly workers: number;
  readonly database: Database;
  readonly deletionsKeptHours: number;
  readonly publicUrl: URL | undefined;
  readonly docs: "open" | "closed";
  readonly corsOrigins: readonly string[] | "*" | undefined;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly http2: "own" | "node";
  readonly logLevel: LogLevel;
  readonly audit: "always" | "by-level";
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
}

/** An hour: longer than any orchestrator waits, short enough to be no typing error. */
const drainMsMax = 3_600_000;

/** Far above the cores of a machine; a typing error must not fork it to death. */
const workersMax = 256;

/** A century: who wants to keep records for ever writes this. */
const deletionsKeptHoursMax = 876_000;

/** The one table of settings: `--help`, docs/configuration.md and the reader all follow it. */
export const settings: { readonly [Key in keyof Configuration]: Setting<NonNullable<Configuration[Key]>> } = {
  host: {
    variable: "HOST",
    flag: "host",
    about: "address to listen on",
    fallback: "127.0.0.1",
    read: readHost,
  },
  port: {
    variable: "PORT",
    flag: "port",
    about: "TCP port for every protocol; 0 takes a free one",
    fallback: "8080",
    read: wholeNumber(0, 65_535),
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
    about: "where plants are kept: sqlite:<file>, postgres://…, or memory: (loopback only)",
    required: true,
    secret: true,
    read: readDatabaseUrl,
  },
  deletionsKeptHours: {
    variable: "PLANTSTORE_DELETIONS_KEPT_HOURS",
    flag: "deletions-kept-hours",
    about: "how long records of deletions are kept",
    fallback: "2160",
    read: wholeNumber(1, deletionsKeptHoursMax, "hours"),
  },
  ...credentialSettings,
  publicUrl: {
    variable: "PLANTSTORE_PUBLIC_URL",
    flag: "public-url",
    about: "base URL of the clients; its path prefixes every path",
    read: readPublicUrl,
  },
  docs: {
    variable: "PLANTSTORE_DOCS",
    flag: "docs",
    about: "who may read /docs and /openapi.json: open to everybody, or closed to who has no credential",
    fallback: "closed",
    read: oneOf(["open", "closed"]),
  },
  corsOrigins: {
    variable: "PLANTSTORE_CORS_ORIGINS",
    flag: "cors-origins",
    about: "origins whose pages may call from browsers, separated by commas, or *",
    read: readCorsOrigins,
  },
  tlsCertFile: {
    variable: "TLS_CERT_FILE",
    flag: "tls-cert-file",
    about: "certificate chain in PEM; goes with the key",
    read: readableFile,
  },
  tlsKeyFile: {
    variable: "TLS_KEY_FILE",
    flag: "tls-key-file",
    about: "private key in PEM; goes with the certificate",
    read: readableFile,
  },
  http2: {
    variable: "PLANTSTORE_HTTP2",
    flag: "http2",
    about: "what serves HTTP/2: the gateway's own engine, or node's",
    fallback: "own",
    read: oneOf(["own", "node"]),
  },
  logLevel: {
    variable: "LOG_LEVEL",
    flag: "log-level",
    about: `least level that is logged: ${logLevels.join(", ")}`,
    fallback: "info",
    read: oneOf(logLevels),
  },
  audit: {
    variable: "PLANTSTORE_AUDIT",
    flag: "audit",
    about:
      "lines of refused credentials and of deletions: always, but at silent; or by-level, as info like other calls",
    fallback: "always",
    read: oneOf(["always", "by-level"]),
  },
  drainDelayMs: {
    variable: "PLANTSTORE_DRAIN_DELAY_MS",
    flag: "drain-delay-ms",
    about: "how long to serve on after readiness went off",
    fallback: "5000",
    read: wholeNumber(0, drainMsMax, "milliseconds"),
  },
  drainTimeoutMs: {
    variable: "PLANTSTORE_DRAIN_TIMEOUT_MS",
    flag: "drain-timeout-ms",
    about: "how long calls that were taken may still run after that",
    fallback: "20000",
    read: wholeNumber(0, drainMsMax, "milliseconds"),
  },
};

function readHost(text: string): Reading<string> {
  return /^[A-Za-z0-9.:_%-]+$/.test(text) ? value(text) : bad("be an IP address or a host name");
}
