import { isLoopback, withoutLineEnd } from "@plantstore/auth/inputs";
import { ConfigurationError } from "./configuration-error.ts";
import { credentialConflicts, verifierSettings } from "./credential-settings.ts";
import { alternatives, flagOf, type Setting, socketPathOf } from "./setting-readers.ts";
import { type Configuration, settings } from "./settings.ts";
import { refuseQuotesAndSpaces } from "./quotes-and-spaces.ts";
import { unknownVariables } from "./unknown-variables.ts";

/** The sources for settings. A setting's flag takes precedence over the setting's variable. */
export interface ConfigurationSources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The flags' values by name. A name has no leading dashes. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads all settings, and checks that they do not contradict each other.
 *
 * Reports all problems together, not only the first problem. An empty variable counts as not set, because container
 * configurations often turn a missing value into an empty value. An unknown variable with the project's prefix is a
 * problem. Messages never contain a secret's value.
 *
 * @throws ConfigurationError with all problems
 */
export function readConfiguration(sources: ConfigurationSources): Configuration {
  const problems: string[] = [];
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, sources, problems)]);
  // The configuration has the type `Configuration` only if no setting has a problem.
  const read: Configuration = Object.fromEntries(entries);
  // If `DATABASE_URL` is not set, the URL in `DATABASE_URL_FILE` is used.
  const configuration: Configuration = { ...read, database: read.database ?? read.databaseUrlFile };
  const unknown = unknownVariables(sources.environment, settingVariables);
  const allProblems = [...problems, ...settingConflicts(configuration, sources), ...unknown];
  if (allProblems.length > 0) throw new ConfigurationError(allProblems);
  return configuration;
}

const settingVariables = Object.values(settings).map(({ variable }) => variable);

/** A setting's effective text. */
interface EffectiveText {
  /** The text. Undefined if the setting is not set and has no default. */
  readonly text: string | undefined;
  /** The source of the text: the flag, the variable, or "default". */
  readonly source: string;
}

function effectiveText(setting: Setting<unknown>, sources: ConfigurationSources): EffectiveText {
  const { rawValue, source } = rawText(setting, sources);
  const text = withoutLineEnd(rawValue);
  return text === "" && source === setting.variable ? { text: setting.fallback, source: "default" } : { text, source };
}

/** Returns a setting's raw text from its flag. Without a flag, returns the text from the setting's variable. */
function rawText(
  setting: Setting<unknown>,
  { environment, flags }: ConfigurationSources,
): { readonly rawValue: string; readonly source: string } {
  const flag = flagOf(setting);
  const flagValue = flag === undefined ? undefined : flags[flag];
  if (flagValue !== undefined) return { rawValue: flagValue, source: `--${flag}` };
  return { rawValue: environment[setting.variable] ?? "", source: setting.variable };
}

/** Returns the flags and variables whose values ended with a line break. The order is the order in `settings`. */
export function trimmedSettings(sources: ConfigurationSources): readonly string[] {
  return Object.values(settings).flatMap((setting: Setting<unknown>) => {
    const { rawValue, source } = rawText(setting, sources);
    return rawValue === withoutLineEnd(rawValue) ? [] : [source];
  });
}

function readSetting(setting: Setting<unknown>, sources: ConfigurationSources, problems: string[]): unknown {
  const { text, source } = effectiveText(setting, sources);
  if (text === undefined) return undefined;
  const read = setting.read(text);
  const unquoted = refuseQuotesAndSpaces(text);
  // Prefers the problem from the setting's reader, because that problem is more specific.
  const result = read.kind === "value" && unquoted.kind === "problems" ? unquoted : read;
  if (result.kind === "value") return result.value;
  const quoted = setting.secret === undefined ? `, got ${JSON.stringify(withoutPassword(text))}` : "";
  problems.push(`${source} must ${result.problems.join(", ")}${quoted}`);
  return undefined;
}

/** Removes users and passwords from the URLs in a text, for messages. */
function withoutPassword(text: string): string {
  return text.replaceAll(/\/\/[^/?#\s]*@/g, "//…@");
}

/** A setting for display. For a secret, `text` contains only the public part. */
export interface ShownSetting extends EffectiveText {
  readonly variable: string;
}

/** Returns every setting with its effective text, in table order. Removes secrets, and passwords in URLs. */
export function showConfiguration(sources: ConfigurationSources): readonly ShownSetting[] {
  return Object.values(settings).map((setting: Setting<unknown>) => {
    const { text, source } = effectiveText(setting, sources);
    return { variable: setting.variable, text: text && shownText(setting, text), source };
  });
}

function shownText({ secret }: Setting<unknown>, text: string): string {
  if (secret === "hidden") return "(hidden)";
  // A query may contain an API key.
  return secret?.(text) ?? withoutPassword(text).replaceAll(/\?[^,\s]*/g, "?…");
}

/** Returns whether the admin address and the service have the same port on overlapping addresses. */
function sharesPort({ host, port, adminAddress }: Partial<Configuration>): boolean {
  if (host === undefined || adminAddress === undefined || port !== adminAddress.port || port === 0) return false;
  const hosts = [host, adminAddress.host].map((each) => (each === "localhost" ? "127.0.0.1" : each));
  const hostsOverlap = hosts[0] === hosts[1] || hosts.includes("0.0.0.0") || hosts.includes("::");
  return hostsOverlap && socketPathOf(host) === undefined;
}

function sharesSocket({ host, adminAddress }: Partial<Configuration>): boolean {
  return host !== undefined && socketPathOf(host) !== undefined && host === adminAddress?.host;
}

// An invalid setting is undefined in `configuration`, so rules check whether a setting is set, and not its value.
function settingConflicts(configuration: Partial<Configuration>, sources: ConfigurationSources): string[] {
  const isSet = (setting: Setting<unknown>): boolean => effectiveText(setting, sources).source !== "default";
  const hasSetting = (key: keyof Configuration): boolean => isSet(settings[key]);
  const { host, database, workers = 1, proxyProtocol } = configuration;
  const isExposed = host !== undefined && !isLoopback(host);
  const isUnix = host !== undefined && socketPathOf(host) !== undefined;
  const verifiers = alternatives(verifierSettings.map(({ variable }) => variable));
  const rules: readonly (readonly [isBroken: boolean, problem: string])[] = [
    [
      hasSetting("database") && hasSetting("databaseUrlFile"),
      "DATABASE_URL and DATABASE_URL_FILE must not both be set",
    ],
    [
      !hasSetting("database") && !hasSetting("databaseUrlFile"),
      "DATABASE_URL is missing; set it to sqlite:<file>, postgres://… or memory:",
    ],
    [hasSetting("tlsCertFile") !== hasSetting("tlsKeyFile"), "TLS_CERT_FILE and TLS_KEY_FILE must be set together"],
    [
      workers > 1 && database !== undefined && database.kind !== "postgres",
      "PLANTSTORE_WORKERS must be 1 unless DATABASE_URL is postgres://: an SQLite file has a single writer",
    ],
    [sharesPort(configuration), "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    [sharesSocket(configuration), "PLANTSTORE_ADMIN_ADDRESS must use another socket than HOST"],
    [
      hasSetting("maxConnectionAgeGraceMs") && !hasSetting("maxConnectionAgeMs"),
      "PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS requires PLANTSTORE_MAX_CONNECTION_AGE_MS",
    ],
    [
      isUnix && proxyProtocol === "on" && hasSetting("tlsCertFile"),
      "HOST must not be a Unix socket when PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE are both set",
    ],
    [
      proxyProtocol === "on" && !hasSetting("trustedProxies"),
      "PLANTSTORE_PROXY_PROTOCOL requires PLANTSTORE_TRUSTED_PROXIES: only trusted proxies may send a PROXY header",
    ],
    [
      isExposed && database?.kind === "memory",
      "DATABASE_URL must not be memory: when HOST is not a loopback address, because a restart loses all plants",
    ],
    [isExposed && !verifierSettings.some(isSet), `HOST must be a loopback address unless one of ${verifiers} is set`],
  ];
  const broken = rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []));
  return [...credentialConflicts(configuration, hasSetting), ...broken];
}
