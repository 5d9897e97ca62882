import { type ParsedFlags, textsOf } from "@protoport/command-line";
import type { Located, Members, SettingFlag } from "@protoport/command-line/settings";
import { findLocated, memberPath, ofSource, subjectOf } from "@protoport/command-line/settings";
import { readLocatedYaml, YamlProblem, type YamlValue } from "../definitions/read-yaml.ts";
import type { ProxyConfiguration } from "./proxy-configuration.ts";
import { proxyConfigurationType } from "./setting-table.ts";

/** The error for settings that are not valid. The message has a line for each problem, with its place. */
export class SettingsProblem extends Error {
  override readonly name = "SettingsProblem";
}

/** The settings, with functions that name a setting's file position or flag. */
export interface ReadSettings {
  readonly settings: ProxyConfiguration;
  /** Returns an error about the setting at a path. The message is the setting's name, followed by `problem`. */
  readonly problemAt: (path: string, problem: string) => SettingsProblem;
  /** Returns the flag, if any, that set the setting at a path or, for a missing setting, its parent. */
  readonly flagOf: (path: string) => string | undefined;
}

/** A configuration file's text, and its name for messages. */
export interface ConfigurationText {
  readonly name: string;
  readonly text: string;
}

/** Maximum mistakes in a message. The limit bounds time and memory. */
const maxProblems = 100;

/**
 * Reads settings from a file and from flags, which replace the same settings in the file.
 *
 * @throws SettingsProblem that lists the first {@link maxProblems} mistakes, each with file, line and column, or with
 * the flag
 */
export function readProxyConfiguration(file: ConfigurationText | undefined, flags: ParsedFlags = {}): ReadSettings {
  const root = file === undefined ? ofSource("", undefined, new Map()) : locate(file);
  const problems: string[] = [];
  const report = (at: Located, problem: string): void => {
    const isLast = problems.length === maxProblems;
    problems.push(isLast ? "the rest of the settings is not checked" : `${subjectOf(at)} ${problem}`);
    if (isLast) throw new SettingsProblem(problems.join("\n"));
  };
  if (root.value instanceof Map) applyFlags(proxyConfigurationType.members ?? {}, [root], flags, report);
  const settings = proxyConfigurationType.read(root, report);
  if (problems.length > 0 || settings === undefined) throw new SettingsProblem(problems.join("\n"));
  return {
    settings,
    flagOf: (path) => findLocated(root, path).source,
    problemAt: (path, problem) => {
      const found = findLocated(root, path);
      // For a setting that is not set, the message has the parent's file position.
      const at = found.path === path ? found : { ...found, path, source: undefined };
      return new SettingsProblem(`${subjectOf(at)} ${problem}`);
    },
  };
}

function locate({ name, text }: ConfigurationText): Located {
  try {
    return toLocated(readLocatedYaml(text), "", name);
  } catch (error) {
    if (!(error instanceof YamlProblem)) throw error;
    throw new SettingsProblem(`${name}:${error.line}:${error.column}: ${error.reason}`);
  }
}

function toLocated(
  { value, line, column, ...key }: YamlValue & { keyLine?: number; keyColumn?: number },
  path: string,
  file: string,
): Located {
  const keyPlace = key.keyLine === undefined ? undefined : `${file}:${key.keyLine}:${key.keyColumn}`;
  const at = { path, place: `${file}:${line}:${column}`, keyPlace, source: undefined };
  if (value instanceof Map) {
    const members = [...value].map(([name, each]): [string, Located] => [
      name,
      toLocated(each, memberPath(path, name), file),
    ]);
    return { ...at, value: new Map(members) };
  }
  if (typeof value !== "object" || value === null) return { ...at, value };
  return { ...at, value: [...value.values()].map((each, index) => toLocated(each, `${path}[${index}]`, file)) };
}

/** Sets flag values in the `targets`, which are mappings with the settings `members`. */
function applyFlags(
  members: Members,
  targets: readonly Located[],
  flags: ParsedFlags,
  report: (at: Located, problem: string) => void,
): void {
  for (const [name, { type, flags: flagsOfSetting = [] }] of Object.entries(members)) {
    for (const flag of flagsOfSetting) {
      const given = flags[flag.name];
      if (given !== undefined) targets.forEach((target) => applyFlag(flag, given, target, name, report));
    }
    if (type.members === undefined || !hasFlagIn(type.members, flags)) continue;
    applyFlags(type.members, type.isList === true ? itemsOf(targets, name) : membersOf(targets, name), flags, report);
  }
}

function applyFlag(
  flag: SettingFlag,
  given: NonNullable<ParsedFlags[string]>,
  { path, value }: Located,
  name: string,
  report: (at: Located, problem: string) => void,
): void {
  if (!(value instanceof Map)) return;
  const read = toValue(flag, given, memberPath(path, name), value);
  if (read === undefined) return;
  if (read instanceof Error) report(ofSource(path, `--${flag.name}`, null), read.message);
  else value.set(name, ofSource(memberPath(path, name), `--${flag.name}`, read));
}

function toValue(
  flag: SettingFlag,
  given: NonNullable<ParsedFlags[string]>,
  path: string,
  members: ReadonlyMap<string, Located>,
): Located["value"] | Error | undefined {
  const texts = textsOf(given);
  if (flag.placeholder === undefined) return flag.value ?? true;
  if (flag.toValue !== undefined) return flag.toValue(texts, path, members);
  if (flag.multiple !== true) return texts.at(-1) ?? "";
  return texts.map((each, at) => ofSource(`${path}[${at}]`, `--${flag.name}`, each));
}

function hasFlagIn(members: Members, flags: ParsedFlags): boolean {
  return Object.values(members).some(
    ({ type, flags: own = [] }) =>
      own.some(({ name }) => flags[name] !== undefined) ||
      (type.members !== undefined && hasFlagIn(type.members, flags)),
  );
}

/** Returns the member `name` of each target. Adds an empty mapping where the member is missing. */
function membersOf(targets: readonly Located[], name: string): Located[] {
  return targets.flatMap(({ path, value, place, keyPlace }) => {
    if (!(value instanceof Map)) return [];
    const member = value.get(name) ?? {
      path: memberPath(path, name),
      place,
      keyPlace,
      source: undefined,
      value: new Map(),
    };
    value.set(name, member);
    return [member];
  });
}

/** Returns the items in the list `name` of each target. */
function itemsOf(targets: readonly Located[], name: string): Located[] {
  return targets.flatMap(({ value }) => {
    const items = value instanceof Map ? value.get(name)?.value : undefined;
    return Array.isArray(items) ? items : [];
  });
}
