import { isLoopback, notParsed, parsed, type ParseResult } from "../../operators/inputs/index.ts";
import { credentialContradictions, verifierSettings } from "./credential-settings.ts";
import { type ConfigurationSources, givenText, withoutPassword } from "./given-text.ts";
import { type Setting, socketPathOf } from "./setting-readers.ts";
import { type Configuration, settings } from "./settings.ts";
import { unknownVariables } from "./unknown-variables.ts";

/**
 * Reads every setting and checks them against each other.
 *
 * It does not stop at the first mistake, so that an operator sees all of them at once. An empty variable counts as not
 * set, because that is what container files turn a missing value into. A variable that is named like a setting but is
 * not one is a problem. The value of a secret never appears in a problem.
 */
export function readConfiguration(sources: ConfigurationSources): ParseResult<Configuration> {
  const problems: string[] = [];
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, sources, problems)]);
  // Keys and types are those of the table; the configuration is complete only if there are no problems.
  const configuration: Configuration = withDatabase(Object.fromEntries(entries));
  problems.push(...contradictions(configuration, sources), ...unknownVariables(sources.environment, settingVariables));
  return problems.length > 0 ? notParsed(...problems) : parsed(configuration);
}

// The URL in the file is used when `DATABASE_URL` is not set.
function withDatabase(configuration: Configuration): Configuration {
  return { ...configuration, database: configuration.database ?? configuration.databaseUrlFile };
}

const settingVariables = Object.values(settings).map(({ variable }) => variable);

function readSetting(setting: Setting<unknown>, sources: ConfigurationSources, problems: string[]): unknown {
  const given = givenText(setting, sources);
  const text = given?.text ?? setting.fallback;
  if (text === undefined) return undefined;
  const reading = setting.read(text);
  if (reading.kind === "value") return reading.value;
  const name = given?.name ?? setting.variable;
  problems.push(`${name} must ${reading.problems.join(", ")}${setting.secret ? "" : `, not ${quote(text)}`}`);
  return undefined;
}

/** Whether the admin address would be that of the service: the same port, unless each has an address of its own. */
function sharesPort({ host, port, adminAddress }: Partial<Configuration>): boolean {
  if (host === undefined || adminAddress === undefined || port !== adminAddress.port || port === 0) return false;
  const hosts = [host, adminAddress.host];
  const areOne = host === adminAddress.host || hosts.includes("0.0.0.0") || hosts.includes("::");
  return areOne && socketPathOf(host) === undefined;
}

function quote(text: string): string {
  return JSON.stringify(withoutPassword(text));
}

// A setting with a problem of its own is undefined here, so the rules ask whether it was given.
function contradictions(configuration: Partial<Configuration>, sources: ConfigurationSources): string[] {
  const isGiven = (setting: Setting<unknown>): boolean => givenText(setting, sources) !== undefined;
  const { host, database, workers } = configuration;
  const isExposed = host !== undefined && !isLoopback(host);
  const problems = credentialContradictions(configuration, isGiven);
  if (isGiven(settings.database) && isGiven(settings.databaseUrlFile)) {
    problems.push("DATABASE_URL and DATABASE_URL_FILE must not be given together");
  }
  if (!isGiven(settings.database) && !isGiven(settings.databaseUrlFile)) {
    problems.push(`DATABASE_URL is missing: ${settings.database.about}`);
  }
  if (isGiven(settings.tlsCertFile) !== isGiven(settings.tlsKeyFile)) {
    problems.push("TLS_CERT_FILE and TLS_KEY_FILE must be given together");
  }
  if (workers !== undefined && workers > 1 && database !== undefined && database.kind !== "postgres") {
    problems.push("PLANTSTORE_WORKERS must be 1 unless DATABASE_URL is postgres://: a file has one writer");
  }
  if (sharesPort(configuration)) {
    problems.push("PLANTSTORE_ADMIN_ADDRESS must have another port than PORT");
  }
  const isUnix = host !== undefined && socketPathOf(host) !== undefined;
  if (isUnix && workers !== undefined && workers > 1) {
    problems.push("PLANTSTORE_WORKERS must be 1 with a Unix socket: processes share a TCP port alone");
  }
  if (isUnix && configuration.proxyProtocol === "on" && isGiven(settings.tlsCertFile)) {
    problems.push("PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE together need a TCP port");
  }
  if (configuration.proxyProtocol === "on" && !isGiven(settings.trustedProxies)) {
    problems.push("PLANTSTORE_PROXY_PROTOCOL needs PLANTSTORE_TRUSTED_PROXIES: nobody else's header is read");
  }
  if (isExposed && database?.kind === "memory") {
    problems.push("DATABASE_URL must not be memory: when HOST is not a loopback address, since nothing is kept");
  }
  if (isExposed && !verifierSettings.some(isGiven)) {
    const variables = verifierSettings.map(({ variable }) => variable).join(", ");
    problems.push(`HOST must be a loopback address unless credentials can be verified: set one of ${variables}`);
  }
  return problems;
}
