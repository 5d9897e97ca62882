import { isLoopback, withoutLineEnd } from "@protoport/auth/inputs";
import {
  type Located,
  mapping,
  ofSource,
  quote,
  type ReportProblem,
  subjectOf,
  withoutPassword,
} from "@protoport/command-line/settings";
import { nearestName } from "@protoport/gateway/options";
import { isDurable, promisesOf } from "../stores/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { credentialConflicts, verifierSettings } from "./credential-settings.ts";
import { refuseQuotesAndSpaces } from "./database-url.ts";
import {
  alternatives,
  defaultText,
  flagOf,
  type PlantSetting,
  socketPathOf,
  variablePrefix,
  variableWithoutPrefix,
} from "./setting-types.ts";
import { type Configuration, settings, type SettingValues } from "./settings.ts";

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
  const report: ReportProblem = (at, problem) => void problems.push(`${subjectOf(at)} ${problem}`);
  const read = mapping<SettingValues>(settings).read(locateSetting(sources, report), report);
  const database = read?.database ?? read?.databaseUrlFile;
  const unknown = unknownVariables(sources.environment, settingVariables);
  const allProblems = [...problems, ...settingConflicts({ ...read, database }, sources), ...unknown];
  if (allProblems.length > 0 || read === undefined || database === undefined) throw new ConfigurationError(allProblems);
  return { ...read, database };
}

const settingVariables = Object.values(settings).map(({ variable }) => variable);

/** A setting's effective text. */
interface EffectiveText {
  /** The text. Undefined if the setting is not set and has no default. */
  readonly text: string | undefined;
  /** The source of the text: the flag, the variable, or "default". */
  readonly source: string;
}

// The text is from the setting's flag. Without a flag, it is from the setting's variable.
function effectiveText(setting: PlantSetting, { environment, flags }: ConfigurationSources): EffectiveText {
  const flag = flagOf(setting);
  const flagValue = flag === undefined ? undefined : flags[flag];
  if (flagValue !== undefined) return { text: withoutLineEnd(flagValue), source: `--${flag}` };
  const text = withoutLineEnd(environment[setting.variable] ?? "");
  return text === "" ? { text: defaultText(setting), source: "default" } : { text, source: setting.variable };
}

/** Returns the settings that are set. Reports values in quotes or white space. */
function locateSetting(sources: ConfigurationSources, report: ReportProblem): Located {
  const values = new Map<string, Located>();
  for (const [key, setting] of Object.entries(settings)) {
    const { text = "", source } = effectiveText(setting, sources);
    const at = ofSource(key, source, text);
    const unquoted = refuseQuotesAndSpaces(text);
    if (unquoted.kind === "problems")
      report(at, `must ${unquoted.problems.join(", ")}${setting.secret === undefined ? `, got ${quote(text)}` : ""}`);
    else if (source !== "default") values.set(key, at);
  }
  return ofSource("", undefined, values);
}

/** A setting for display. For a secret, `text` contains only the public part. */
interface ShownSetting extends EffectiveText {
  readonly variable: string;
}

/** Returns every setting with its effective text, in table order. Removes secrets, and passwords in URLs. */
export function showConfiguration(sources: ConfigurationSources): readonly ShownSetting[] {
  return Object.values(settings).map((setting: PlantSetting) => {
    const { text, source } = effectiveText(setting, sources);
    return { variable: setting.variable, text: text && shownText(setting, text), source };
  });
}

function shownText({ secret }: PlantSetting, text: string): string {
  if (secret === "hidden") return "(hidden)";
  // A query may contain an API key.
  return secret?.(text) ?? withoutPassword(text).replaceAll(/\?[^,\s]*/g, "?…");
}

/** Returns whether the admin address and the service have the same port on overlapping addresses. */
function sharesPort({ host, port, adminAddress }: Partial<SettingValues>): boolean {
  if (host === undefined || adminAddress === undefined || port !== adminAddress.port || port === 0) return false;
  const hosts = [host, adminAddress.host].map((each) => (each === "localhost" ? "127.0.0.1" : each));
  const hostsOverlap = hosts[0] === hosts[1] || hosts.includes("0.0.0.0") || hosts.includes("::");
  return hostsOverlap && socketPathOf(host) === undefined;
}

function sharesSocket({ host, adminAddress }: Partial<SettingValues>): boolean {
  return host !== undefined && socketPathOf(host) !== undefined && host === adminAddress?.host;
}

/** Required settings, each with the settings that require it. */
const requirements: readonly (readonly [required: keyof Configuration, by: readonly (keyof Configuration)[]])[] = [
  ["maxConnectionAgeMs", ["maxConnectionAgeGraceMs"]],
  ["jwtAudiences", ["jwtIssuers"]],
  ["jwtIssuers", ["jwtAudiences", "jwtAudienceClaim", "jwtKeysUrls", "jwtKeysFile", "jwtAlgorithms", "jwtType"]],
  ["introspectionClientId", ["introspectionUrl"]],
  ["introspectionClientSecretFile", ["introspectionUrl"]],
  ["introspectionUrl", ["introspectionClientId", "introspectionClientSecretFile"]],
  ["introspectionUrl", ["introspectionAudiences", "introspectionSubjectClaim"]],
  ["trustedProxies", ["proxyFields"]],
];

// An invalid setting is undefined in `configuration`, so rules check whether a setting is set, and not its value.
function settingConflicts(configuration: Partial<SettingValues>, sources: ConfigurationSources): string[] {
  const isSet = (setting: PlantSetting): boolean => effectiveText(setting, sources).source !== "default";
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
      workers > 1 && database !== undefined && !promisesOf(database.kind).isShared,
      "PLANTSTORE_WORKERS must be 1 unless several processes can use the store, such as postgres://",
    ],
    [sharesPort(configuration), "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    [sharesSocket(configuration), "PLANTSTORE_ADMIN_ADDRESS must use another socket than HOST"],
    [
      isUnix && proxyProtocol === "on" && hasSetting("tlsCertFile"),
      "HOST must not be a Unix socket when PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE are both set",
    ],
    [
      proxyProtocol === "on" && !hasSetting("trustedProxies"),
      "PLANTSTORE_PROXY_PROTOCOL requires PLANTSTORE_TRUSTED_PROXIES: only trusted proxies may send a PROXY header",
    ],
    [
      isExposed && database !== undefined && !isDurable(database),
      "DATABASE_URL must not be memory: when HOST is not a loopback address, because a restart loses all plants",
    ],
    [isExposed && !verifierSettings.some(isSet), `HOST must be a loopback address unless one of ${verifiers} is set`],
  ];
  const broken = rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []));
  const unmet = requirements.flatMap(([required, by]) => {
    const ignored = hasSetting(required) ? [] : by.filter(hasSetting);
    return ignored.map((key) => `${settings[key].variable} requires ${settings[required].variable}`);
  });
  return [...credentialConflicts(configuration, hasSetting), ...unmet, ...broken];
}

/** Prefixes of variables that belong to this program. A misspelt `TLS_CERT_FILE` would turn TLS off. */
const prefixes = [variablePrefix, "TLS_CERT", "TLS_KEY"];

/**
 * Returns a problem for every unknown variable with a setting's prefix, so that a misspelt setting is not ignored.
 *
 * @param known - the names of all known variables
 */
function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const setVariables = Object.entries(environment).filter(
    ([name, value]) => prefixes.some((prefix) => name.startsWith(prefix)) && value !== "",
  );
  return setVariables
    .filter(([name, value = ""]) => !known.includes(name) && !isServiceLink(name, value))
    .map(([name]) => `unknown setting "${name}"${suggestionText(name, known)}`);
}

// Compares names without the prefix, so that PLANTSTORE_PORT matches PORT.
function suggestionText(name: string, known: readonly string[]): string {
  const nearest = nearestName(variableWithoutPrefix(name), known.map(variableWithoutPrefix));
  const suggestion = known.find(
    (variable) => variableWithoutPrefix(variable) === nearest || variable === `${name}_FILE`,
  );
  return suggestion === undefined ? "" : `, did you mean "${suggestion}"?`;
}

// Kubernetes passes the addresses of all services to every container. The variables for a service named plantstore or
// plantstore-* have the same prefix as settings.
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}
