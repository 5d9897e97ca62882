import { isLoopback, withoutLineEnd } from "@plantstore/auth/inputs";
import { ConfigurationError } from "./configuration-error.ts";
import { credentialContradictions, verifierSettings } from "./credential-settings.ts";
import { alternatives, flagOf, type Setting, socketPathOf } from "./setting-readers.ts";
import { type Configuration, settings } from "./settings.ts";
import { unwrapped } from "./setting-text.ts";
import { unknownVariables } from "./unknown-variables.ts";

/** The sources of the settings; a flag takes precedence over the variable of the same setting. */
export interface ConfigurationSources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Flags by name, without dashes. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads every setting and checks them against each other.
 *
 * It does not stop at the first mistake, so that an operator sees all of them at once. An empty variable counts as not
 * set, because that is what container files turn a missing value into. A variable that is named like a setting but is
 * not one is a problem. The value of a secret never appears in a problem.
 *
 * @throws ConfigurationError with everything that is wrong
 */
export function readConfiguration(sources: ConfigurationSources): Configuration {
  const problems: string[] = [];
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, sources, problems)]);
  // Keys and types are those of the table; the configuration is complete only if there are no problems.
  const read: Configuration = Object.fromEntries(entries);
  // The URL in the file is used when `DATABASE_URL` is not set.
  const configuration: Configuration = { ...read, database: read.database ?? read.databaseUrlFile };
  const unknown = unknownVariables(sources.environment, settingVariables);
  const all = [...problems, ...contradictions(configuration, sources), ...unknown];
  if (all.length > 0) throw new ConfigurationError(all);
  return configuration;
}

const settingVariables = Object.values(settings).map(({ variable }) => variable);

/** The text of a setting that is in force. */
interface TextInForce {
  /** `undefined` when the setting has none. */
  readonly text: string | undefined;
  /** Where the text is from: the flag, the variable, or "default". */
  readonly source: string;
}

function textInForce(setting: Setting<unknown>, sources: ConfigurationSources): TextInForce {
  const { given, source } = givenText(setting, sources);
  const text = withoutLineEnd(given);
  return text === "" && source === setting.variable ? { text: setting.fallback, source: "default" } : { text, source };
}

/** Returns the text of a setting as it was given, by its flag or else by its variable. */
function givenText(
  setting: Setting<unknown>,
  { environment, flags }: ConfigurationSources,
): { readonly given: string; readonly source: string } {
  const flag = flagOf(setting);
  const byFlag = flag === undefined ? undefined : flags[flag];
  if (byFlag !== undefined) return { given: byFlag, source: `--${flag}` };
  return { given: environment[setting.variable] ?? "", source: setting.variable };
}

/** Returns the settings from whose texts a line end was removed, as flags or variables, in the order of the table. */
export function trimmedSettings(sources: ConfigurationSources): readonly string[] {
  return Object.values(settings).flatMap((setting: Setting<unknown>) => {
    const { given, source } = givenText(setting, sources);
    return given === withoutLineEnd(given) ? [] : [source];
  });
}

function readSetting(setting: Setting<unknown>, sources: ConfigurationSources, problems: string[]): unknown {
  const { text, source } = textInForce(setting, sources);
  if (text === undefined) return undefined;
  const read = setting.read(text);
  const wrapping = unwrapped(text);
  // The reader's problem is the more exact one.
  const reading = read.kind === "value" && wrapping.kind === "problems" ? wrapping : read;
  if (reading.kind === "value") return reading.value;
  const quoted = setting.secret === undefined ? `, got ${JSON.stringify(withoutPassword(text))}` : "";
  problems.push(`${source} must ${reading.problems.join(", ")}${quoted}`);
  return undefined;
}

/** Returns a text without the users and passwords in its URLs, for messages. */
function withoutPassword(text: string): string {
  return text.replaceAll(/\/\/[^/?#\s]*@/g, "//…@");
}

/** A setting as an operator may see it. Of a secret, the text is only the part that may be shown. */
export interface ShownSetting extends TextInForce {
  readonly variable: string;
}

/** Returns every setting with the text in force, in the order of the table. Shows no secret and no password in a URL. */
export function showConfiguration(sources: ConfigurationSources): readonly ShownSetting[] {
  return Object.values(settings).map((setting: Setting<unknown>) => {
    const { text, source } = textInForce(setting, sources);
    return { variable: setting.variable, text: text && shownText(setting, text), source };
  });
}

function shownText({ secret }: Setting<unknown>, text: string): string {
  if (secret === "hidden") return "(hidden)";
  // A query may contain an API key.
  return secret?.(text) ?? withoutPassword(text).replaceAll(/\?[^,\s]*/g, "?…");
}

/** Whether the admin address would be that of the service: the same port, unless each has an address of its own. */
function sharesPort({ host, port, adminAddress }: Partial<Configuration>): boolean {
  if (host === undefined || adminAddress === undefined || port !== adminAddress.port || port === 0) return false;
  const hosts = [host, adminAddress.host].map((each) => (each === "localhost" ? "127.0.0.1" : each));
  const areOne = hosts[0] === hosts[1] || hosts.includes("0.0.0.0") || hosts.includes("::");
  return areOne && socketPathOf(host) === undefined;
}

// A setting with a problem of its own is undefined here, so the rules ask whether it was given.
function contradictions(configuration: Partial<Configuration>, sources: ConfigurationSources): string[] {
  const isGiven = (setting: Setting<unknown>): boolean => textInForce(setting, sources).source !== "default";
  const given = (key: keyof Configuration): boolean => isGiven(settings[key]);
  const { host, database, workers = 1, proxyProtocol } = configuration;
  const isExposed = host !== undefined && !isLoopback(host);
  const isUnix = host !== undefined && socketPathOf(host) !== undefined;
  const verifiers = alternatives(verifierSettings.map(({ variable }) => variable));
  const rules: readonly (readonly [isBroken: boolean, problem: string])[] = [
    [given("database") && given("databaseUrlFile"), "DATABASE_URL and DATABASE_URL_FILE must not both be set"],
    [!given("database") && !given("databaseUrlFile"), "DATABASE_URL is missing; set it to sqlite:<file>, postgres://… or memory:"],
    [given("tlsCertFile") !== given("tlsKeyFile"), "TLS_CERT_FILE and TLS_KEY_FILE must be set together"],
    [
      workers > 1 && database !== undefined && database.kind !== "postgres",
      "PLANTSTORE_WORKERS must be 1 unless DATABASE_URL is postgres://: an SQLite file has a single writer",
    ],
    [sharesPort(configuration), "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    [
      given("maxConnectionAgeGraceMs") && !given("maxConnectionAgeMs"),
      "PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS requires PLANTSTORE_MAX_CONNECTION_AGE_MS",
    ],
    [
      isUnix && proxyProtocol === "on" && given("tlsCertFile"),
      "HOST must not be a Unix socket when PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE are both set",
    ],
    [
      proxyProtocol === "on" && !given("trustedProxies"),
      "PLANTSTORE_PROXY_PROTOCOL requires PLANTSTORE_TRUSTED_PROXIES: only trusted proxies may send a PROXY header",
    ],
    [
      isExposed && database?.kind === "memory",
      "DATABASE_URL must not be memory: when HOST is not a loopback address, because a restart loses all plants",
    ],
    [
      isExposed && !verifierSettings.some(isGiven),
      `HOST must be a loopback address unless one of ${verifiers} is set`,
    ],
  ];
  const broken = rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []));
  return [...credentialContradictions(configuration, given), ...broken];
}
