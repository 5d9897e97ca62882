import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputProblem, parseOptions, parseProfile, parseSwitches, readRules, toRestOptions } from "../check/index.ts";
import { drainMsMax, drainTimesDefault, type DrainTimes } from "@plantstore/gateway/health";
import type { CorsOptions } from "@plantstore/gateway";
import { createNameFilter, type RestOptions } from "@plantstore/gateway/rest";
import type { UpstreamTls } from "../upstreams/index.ts";

/** How the command is used. */
export const usage: string = `Usage: npx @plantstore/proxy --upstream ADDRESS (--reflection | --descriptors FILE) [options]

Serves a gRPC service in any language over REST, Connect, gRPC-Web and gRPC, by its google.api.http annotations.

  --upstream ADDRESS       where it is: dns:host:port, http://host:port, https://host:port or unix:/path. Several
                           services, each with its reflection: given several times
  --reflection             asks it for its descriptors, again when a server is new, and every minute
  --reflect-header FIELD   a header field for that, as "Authorization: Bearer …"; may be repeated
  --descriptors FILE       takes them from a binary descriptor set instead, and again when that changes. From
                           \`buf build -o set.binpb\`, or \`protoc --include_imports --descriptor_set_out=set.binpb\`
  --rules FILE             HTTP rules in the place of annotations: a service config as YAML or JSON; may be repeated
  --service NAME           these services alone; NAME ends with * for all that begin so; may be repeated
  --rest OPTION            with this option of REST for all services, such as lenient; may be repeated
  --rest-profile NAME      with the options that clients of strict (default), google, grpc-gateway or envoy rely on
  --omit RPC               leaves an RPC out of REST, as package.Service.Method; may be repeated
  --timeout-ms NUMBER      deadline of unary calls that set none
  --timeout-max-ms NUMBER  longest deadline that callers can set

  --host ADDRESS           where to listen; default 127.0.0.1, :: for all addresses
  --port NUMBER            default 8080
  --tls-cert FILE, --tls-key FILE
                           serves TLS; read again at SIGHUP
  --cors ORIGIN            lets pages of this origin call; may be repeated; * for all
  --no-docs                without the description at /openapi.json and the page at /docs
  --admin-port NUMBER      serves /livez, /readyz and /metrics on this port of the same address
  --require-all            /readyz is 503 while any of several upstreams cannot be reached; by default, while all
  --drain-delay-ms NUMBER  how long to keep serving after readiness went off; default ${drainTimesDefault.delayMs}
  --drain-timeout-ms NUMBER
                           how long running calls may take after that; default ${drainTimesDefault.timeoutMs}

  --upstream-ca FILE       certificates to trust in the place of the system's, for https:, or TLS with dns:
  --upstream-cert FILE, --upstream-key FILE
                           our own, for mutual TLS
  --upstream-name NAME     the name that its certificate must have

  --check                  says what would be served instead, or what is wrong
  --wait                   waits for descriptors that cannot be read yet, of all upstreams
  -h, --help               prints this

SIGHUP reads descriptors and certificates again; SIGTERM and SIGINT drain: /readyz is 503 while calls
are served for --drain-delay-ms, then the port is closed, and running calls have --drain-timeout-ms.
A second signal ends it immediately.
Exit code: 0 after SIGTERM, 1 if it cannot serve, 2 if what was given cannot be read.

npx @plantstore/proxy check --help: another command, which reports whether a definition can be served.`;

/** The files of a certificate chain and of its key, both in PEM. */
export interface CertificateFiles {
  /** Both paths. */
  readonly path: string;
  /** Reads the files, as they are by now. @throws InputProblem */
  read(): CertificatePair;
}

/** The texts of {@link CertificateFiles}. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** What was asked for. */
export interface ProxySettings {
  readonly upstreams: readonly string[];
  readonly descriptors: URL | "reflection";
  /** Header fields of the calls of reflection. */
  readonly reflectionHeader: Readonly<Record<string, string>>;
  readonly services: ((name: string) => boolean) | undefined;
  readonly rest: RestOptions;
  readonly timeoutMs: number | undefined;
  readonly timeoutMaxMs: number | undefined;
  readonly upstreamTls: UpstreamTls | undefined;
  readonly host: string;
  readonly port: number;
  readonly tls: CertificateFiles | undefined;
  readonly cors: CorsOptions | undefined;
  readonly hasDocs: boolean;
  readonly adminPort: number | undefined;
  /** Whether readiness needs all of several upstreams, rather than any. */
  readonly requiresAll: boolean;
  readonly drain: DrainTimes;
  readonly checks: boolean;
  readonly waits: boolean;
}

/** Reads the words of a command line, and the files that they name. @throws InputProblem for what cannot be used */
export async function readProxySettings(words: readonly string[]): Promise<ProxySettings | "help"> {
  const { values, positionals } = parseWords(words);
  if (values.help === true) return "help";
  const { upstream: upstreams = [], reflection = false, descriptors, service = [], cors = [], rules = [] } = values;
  if (positionals.length > 0) throw new InputProblem(`${positionals.join(" ")} belongs to no option\n\n${usage}`);
  if (upstreams.length === 0) throw new InputProblem(`--upstream is missing\n\n${usage}`);
  if (reflection === (descriptors !== undefined)) {
    throw new InputProblem("one of --reflection and --descriptors says what the upstream serves");
  }
  if (descriptors !== undefined && upstreams.length > 1) {
    throw new InputProblem(
      "--descriptors belongs to one upstream; several have --reflection, or a program of their own",
    );
  }
  const outside = (await Promise.all(rules.map(readRules))).flat();
  return {
    upstreams,
    descriptors: descriptors === undefined ? "reflection" : pathToFileURL(descriptors),
    reflectionHeader: readFields(values["reflect-header"] ?? []),
    services: createNameFilter(service),
    rest: {
      ...toRestOptions(parseSwitches(values.rest ?? []), parseProfile(values["rest-profile"] ?? "strict")),
      omit: values.omit ?? [],
      rules: outside,
      ignoreUnregistered: true,
    },
    timeoutMs: readNumber("timeout-ms", values["timeout-ms"], 1, timeoutMsMax),
    timeoutMaxMs: readNumber("timeout-max-ms", values["timeout-max-ms"], 1, timeoutMsMax),
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
    checks: values.check === true,
    waits: values.wait === true,
  };
}

const portMax = 65_535;
/** Milliseconds of the longest deadline. A day: longer ones are streams without any. */
const timeoutMsMax = 86_400_000;

function parseWords(words: readonly string[]) {
  const text = { type: "string" } as const;
  const several = { type: "string", multiple: true } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    upstream: several,
    reflection: flag,
    "reflect-header": several,
    descriptors: text,
    rules: several,
    service: several,
    rest: several,
    "rest-profile": text,
    omit: several,
    "timeout-ms": text,
    "timeout-max-ms": text,
    host: text,
    port: text,
    "tls-cert": text,
    "tls-key": text,
    cors: several,
    "no-docs": flag,
    "admin-port": text,
    "require-all": flag,
    "drain-delay-ms": text,
    "drain-timeout-ms": text,
    "upstream-ca": text,
    "upstream-cert": text,
    "upstream-key": text,
    "upstream-name": text,
    check: flag,
    wait: flag,
    help: { type: "boolean", short: "h" },
  } as const;
  return parseOptions(words, options, usage);
}

function readNumber(name: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new InputProblem(`--${name} is a number from ${least} to ${most}, not ${text}`);
}

/** Reads header fields as curl takes them. The value is not shown: it may be a credential. */
function readFields(fields: readonly string[]): Readonly<Record<string, string>> {
  const header = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    try {
      header.append(field.slice(0, Math.max(colon, 0)), field.slice(colon + 1));
    } catch {
      throw new InputProblem("--reflect-header is a name, a colon and a value, as in Authorization: Bearer …");
    }
  }
  return Object.fromEntries(header);
}

function toCertificateFiles(cert: string | undefined, key: string | undefined): CertificateFiles | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) throw new InputProblem("--tls-cert and --tls-key belong together");
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
    throw new InputProblem("--upstream-cert and --upstream-key belong together");
  }
  if (ca === undefined && cert === undefined && servername === undefined) return undefined;
  const plain = upstreams.find((upstream) => /^(?:http|unix):/i.test(upstream));
  // Else calls, and the credentials in them, would go there in the clear although TLS was asked for.
  if (plain !== undefined) throw new InputProblem(`${plain} is without TLS, which --upstream-ca and its like ask for`);
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
    throw new InputProblem(`${path} cannot be read: ${messageOf(error)}`);
  }
  // Node takes an empty text for none: it would trust the system's certificates, or serve without one.
  if (!text.includes("-----BEGIN ")) throw new InputProblem(`${path} has no certificate and no key in PEM`);
  return text;
}
