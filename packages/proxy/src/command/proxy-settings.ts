import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputError, parseOptions, parseProfile, parseSwitches, readRules, toRestOptions } from "../check/index.ts";
import { drainMsMax, drainTimesDefault, type DrainTimes } from "@plantstore/gateway/health";
import type { CorsOptions } from "@plantstore/gateway";
import { createNameFilter, type RestOptions } from "@plantstore/gateway/rest";
import { defaultRestTimeoutMs, upstreamLimits, type UpstreamTls } from "../upstreams/index.ts";

/** The text of `--help`. */
export const usage: string = `Usage: npx @plantstore/proxy --upstream ADDRESS (--reflection | --descriptors FILE) [options]

Serves gRPC services, in any language, over REST (by their google.api.http annotations), Connect, gRPC-Web and gRPC.

  --upstream ADDRESS       where the service is: dns:host:port, http://host:port, https://host:port or unix:/path; may
                           be repeated for several services, each of which must have reflection
  --reflection             reads descriptors from the upstream: at the start, when a server is new, and every minute
  --reflect-header FIELD   header field of reflection calls, such as "Authorization: Bearer …"; may be repeated
  --descriptors FILE       reads descriptors from a binary descriptor set instead, and again when it changes. Create it
                           with \`buf build -o set.binpb\` or
                           \`protoc --include_imports --descriptor_set_out=set.binpb\`
  --rules FILE             HTTP rules that replace annotations: a service config in YAML or JSON; may be repeated
  --service NAME           serves only this service; a NAME that ends with * is a prefix; may be repeated
  --rest OPTION            enables this REST option for all services, such as lenient; may be repeated
  --rest-profile NAME      applies the options of this profile: strict (default), google, grpc-gateway, envoy or a2a
  --omit RPC               excludes an RPC from REST, as package.Service.Method; may be repeated
  --timeout-ms NUMBER      deadline of unary calls that set none, 0 for no deadline; default ${defaultRestTimeoutMs} for REST
  --timeout-max-ms NUMBER  longest deadline that callers can set
  --header-bytes NUMBER    largest header of a request, and header or trailer of a response; default ${upstreamLimits.headerBytes}

  --host ADDRESS           address to listen on, :: for all addresses; default 127.0.0.1
  --port NUMBER            port to listen on; default 8080
  --tls-cert FILE, --tls-key FILE
                           certificate and key to serve TLS with; read again on SIGHUP
  --cors ORIGIN            allows calls by pages of this origin, * for all; may be repeated
  --no-docs                disables the description at /openapi.json and the page at /docs
  --admin-port NUMBER      serves /livez, /readyz and /metrics on this port of the same address
  --require-all            /readyz returns 503 while any of several upstreams is unreachable; by default, while all are
  --drain-delay-ms NUMBER  how long to keep serving after readiness fails at shutdown; default ${drainTimesDefault.delayMs}
  --drain-timeout-ms NUMBER
                           how long running calls may take after that; default ${drainTimesDefault.timeoutMs}

  --upstream-ca FILE       certificates to trust instead of the system's, for https: or for TLS with dns:
  --upstream-cert FILE, --upstream-key FILE
                           client certificate and key for mutual TLS
  --upstream-name NAME     name that the upstream's certificate must have

  --check                  reports what would be served, or what is wrong, and exits
  --wait                   waits for descriptors that cannot be read yet, of all upstreams
  -h, --help               prints this help

SIGHUP reloads descriptors and certificates. SIGTERM and SIGINT drain: /readyz returns 503 while calls
are served for --drain-delay-ms, then the port is closed, and running calls have --drain-timeout-ms.
A second signal stops the process immediately.
Exit code: 0 after SIGTERM, 1 if the proxy cannot serve, 2 if an argument or a file is not valid.

npx @plantstore/proxy check --help: a separate command that reports whether a definition can be served.`;

/** The PEM files of a certificate chain and its private key. */
export interface CertificateFiles {
  /** Both paths, for messages. */
  readonly path: string;
  /** Reads both files. @throws InputError */
  read(): CertificatePair;
}

/** The contents of {@link CertificateFiles}. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** The settings of the proxy command. */
export interface ProxySettings {
  readonly upstreams: readonly string[];
  readonly descriptors: URL | "reflection";
  /** Header fields of reflection calls. */
  readonly reflectionHeader: Readonly<Record<string, string>>;
  readonly services: ((name: string) => boolean) | undefined;
  readonly rest: RestOptions;
  readonly timeoutMs: number | undefined;
  readonly timeoutMaxMs: number | undefined;
  /** Maximum bytes of a header or trailer section in both directions. */
  readonly headerBytes: number;
  readonly upstreamTls: UpstreamTls | undefined;
  readonly host: string;
  readonly port: number;
  readonly tls: CertificateFiles | undefined;
  readonly cors: CorsOptions | undefined;
  readonly hasDocs: boolean;
  readonly adminPort: number | undefined;
  /** Whether the proxy is ready only if all upstreams are ready, rather than any. */
  readonly requiresAll: boolean;
  readonly drain: DrainTimes;
  readonly checksOnly: boolean;
  readonly waitsForDescriptors: boolean;
}

/**
 * Parses command-line arguments, and reads the files that they name. @throws InputError if an argument or file is
 * invalid
 */
export async function readProxySettings(args: readonly string[]): Promise<ProxySettings | "help"> {
  const { values, positionals } = parseArguments(args);
  if (values.help === true) return "help";
  const { upstream: upstreams = [], reflection = false, descriptors, service = [], cors = [], rules = [] } = values;
  if (positionals.length > 0) throw new InputError(`unexpected argument "${positionals.join(" ")}"\n\n${usage}`);
  if (upstreams.length === 0) throw new InputError(`--upstream is missing\n\n${usage}`);
  if (reflection === (descriptors !== undefined)) {
    throw new InputError("exactly one of --reflection and --descriptors is required");
  }
  if (descriptors !== undefined && upstreams.length > 1) {
    throw new InputError("--descriptors requires exactly one --upstream; for several, use --reflection or createProxy");
  }
  const rulesOfFiles = (await Promise.all(rules.map(readRules))).flat();
  return {
    upstreams,
    descriptors: descriptors === undefined ? "reflection" : pathToFileURL(descriptors),
    reflectionHeader: readFields(values["reflect-header"] ?? []),
    services: createNameFilter(service),
    rest: {
      ...toRestOptions(parseSwitches(values.rest ?? []), parseProfile(values["rest-profile"] ?? "strict")),
      omit: values.omit ?? [],
      rules: rulesOfFiles,
      ignoreUnregistered: true,
    },
    timeoutMs: readNumber("timeout-ms", values["timeout-ms"], 0, timeoutMsMax),
    timeoutMaxMs: readNumber("timeout-max-ms", values["timeout-max-ms"], 1, timeoutMsMax),
    headerBytes:
      readNumber("header-bytes", values["header-bytes"], headerBytesMin, headerBytesMax) ?? upstreamLimits.headerBytes,
    upstreamTls: readUpstreamTls(upstreams, values),
    host: values.host ?? "127.0.0.1",
    port: readNumber("port", values.port, 0, portMax) ?? 8080,
    tls: toCertificateFiles(values["tls-cert"], values["tls-key"]),
    cors: cors.length === 0 ? undefined : { origins: cors.includes("*") ? "*" : cors },
    hasDocs: values["no-docs"] !== true,
    adminPort: readNumber("admin-port", values["admin-port"], 0, portMax),
    requiresAll: values["require-all"] === true,
    drain: {
      delayMs: readNumber("drain-delay-ms", values["drain-delay-ms"], 0, drainMsMax) ?? drainTimesDefault.delayMs,
      timeoutMs:
        readNumber("drain-timeout-ms", values["drain-timeout-ms"], 0, drainMsMax) ?? drainTimesDefault.timeoutMs,
    },
    checksOnly: values.check === true,
    waitsForDescriptors: values.wait === true,
  };
}

const portMax = 65_535;
/** The range of a limit of header fields. From 4 KiB, enough for a credential, to 1 MiB, because any caller can send it. */
const [headerBytesMin, headerBytesMax] = [4_096, 1_048_576];
/** Maximum timeout in milliseconds. A day: longer calls are streams, which need no deadline. */
const timeoutMsMax = 86_400_000;

function parseArguments(args: readonly string[]) {
  const string = { type: "string" } as const;
  const repeatable = { type: "string", multiple: true } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    upstream: repeatable,
    reflection: flag,
    "reflect-header": repeatable,
    descriptors: string,
    rules: repeatable,
    service: repeatable,
    rest: repeatable,
    "rest-profile": string,
    omit: repeatable,
    "timeout-ms": string,
    "timeout-max-ms": string,
    "header-bytes": string,
    host: string,
    port: string,
    "tls-cert": string,
    "tls-key": string,
    cors: repeatable,
    "no-docs": flag,
    "admin-port": string,
    "require-all": flag,
    "drain-delay-ms": string,
    "drain-timeout-ms": string,
    "upstream-ca": string,
    "upstream-cert": string,
    "upstream-key": string,
    "upstream-name": string,
    check: flag,
    wait: flag,
    help: { type: "boolean", short: "h" },
  } as const;
  return parseOptions(args, options, usage);
}

function readNumber(name: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new InputError(`--${name} must be between ${least} and ${most}, got "${text}"`);
}

/** Parses header fields in the form of curl. Errors do not show the value, which may be a credential. */
function readFields(fields: readonly string[]): Readonly<Record<string, string>> {
  const header = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    try {
      header.append(field.slice(0, Math.max(colon, 0)), field.slice(colon + 1));
    } catch {
      throw new InputError('--reflect-header must be a name, a colon and a value, such as "Authorization: Bearer …"');
    }
  }
  return Object.fromEntries(header);
}

function toCertificateFiles(cert: string | undefined, key: string | undefined): CertificateFiles | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) throw new InputError("--tls-cert and --tls-key must be set together");
  return { path: `${cert}, ${key}`, read: () => ({ cert: readPem(cert), key: readPem(key) }) };
}

function readUpstreamTls(
  upstreams: readonly string[],
  values: {
    readonly "upstream-ca"?: string | undefined;
    readonly "upstream-cert"?: string | undefined;
    readonly "upstream-key"?: string | undefined;
    readonly "upstream-name"?: string | undefined;
  },
): UpstreamTls | undefined {
  const { "upstream-ca": ca, "upstream-cert": cert, "upstream-key": key, "upstream-name": servername } = values;
  if ((cert === undefined) !== (key === undefined)) {
    throw new InputError("--upstream-cert and --upstream-key must be set together");
  }
  if (ca === undefined && cert === undefined && servername === undefined) return undefined;
  const plaintext = upstreams.find((upstream) => /^(?:http|unix):/i.test(upstream));
  // The user requested TLS, so calls and their credentials must not be sent to this upstream in plaintext.
  if (plaintext !== undefined)
    throw new InputError(`--upstream-ca, --upstream-cert and --upstream-name require TLS, got "${plaintext}"`);
  return {
    ...(ca !== undefined && { ca: readPem(ca) }),
    ...(cert !== undefined && { cert: readPem(cert) }),
    ...(key !== undefined && { key: readPem(key) }),
    ...(servername !== undefined && { servername }),
  };
}

function readPem(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new InputError(`cannot read ${path}: ${messageOf(error)}`);
  }
  // Node ignores an empty string, and would then trust the system's certificates or serve without a certificate.
  if (!text.includes("-----BEGIN ")) throw new InputError(`${path} does not contain a PEM certificate or key`);
  return text;
}
