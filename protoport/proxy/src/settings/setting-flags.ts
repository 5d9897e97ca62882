import type { JsonSchema, Members, SettingFlag } from "@protoport/command-line/settings";
import { proxyConfigurationType } from "./setting-table.ts";

/** A flag and the setting to which it belongs. */
export interface FlagOfSetting extends SettingFlag {
  /** The setting's path, such as `upstreams[].tls.ca`. */
  readonly path: string;
  readonly about: string;
  readonly fallback: unknown;
}

/** Returns the flags for all settings, in table order. */
export function flagsOfSettings(
  members: Members = proxyConfigurationType.members ?? {},
  prefix: string = "",
): FlagOfSetting[] {
  return settingRows(members, prefix).flatMap(({ path, about, fallback, flags }) =>
    flags.map((flag) => ({ ...flag, path, about: flag.about ?? about, fallback })),
  );
}

/** A row in the table on the reference page. */
interface SettingRow {
  readonly path: string;
  readonly type: string;
  readonly about: string;
  readonly fallback: unknown;
  readonly isRequired: boolean;
  readonly flags: readonly SettingFlag[];
}

/** Returns all settings, in table order. A mapping comes before its members. */
export function settingRows(
  members: Members = proxyConfigurationType.members ?? {},
  prefix: string = "",
): SettingRow[] {
  return Object.entries(members).flatMap(([name, { type, about, fallback, required, flags = [] }]) => {
    const path = `${prefix}${name}`;
    const row = { path, type: type.label, about, fallback, isRequired: required === true, flags };
    return [row, ...(type.members ? settingRows(type.members, `${path}${type.isList === true ? "[]" : ""}.`) : [])];
  });
}

/** Returns the configuration file's JSON Schema. */
export function proxyConfigurationSchema(): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of protoport",
    ...proxyConfigurationType.schema,
  };
}

/**
 * Returns the table in protoport/docs/reference/proxy-configuration.md, as Markdown lines. Settings with the same
 * meaning share a line. Mappings have no line, because their members' names contain theirs.
 */
export function settingTable(): string[] {
  const namesOf = new Map<string, string[]>();
  for (const { path, type, about, fallback, isRequired, flags } of settingRows()) {
    if (type === "mapping") continue;
    const initial = isRequired ? ", required" : isEmpty(fallback) ? "" : `, \`${JSON.stringify(fallback)}\``;
    const cells = `${type}${initial} | ${about.replaceAll("|", "\\|")}`;
    const names = [path, ...flags.map(({ name }) => `--${name}`)].map((name) => `\`${name}\``);
    namesOf.set(cells, [...(namesOf.get(cells) ?? []), ...names]);
  }
  const rows = [...namesOf].map(([cells, names]) => `| ${names.join(" ")} | ${cells} |`);
  return ["| setting and flag | type and default | meaning |", "|---|---|---|", ...rows];
}

/** Returns whether a default needs no mention: none, or an empty list or mapping. */
function isEmpty(fallback: unknown): boolean {
  return fallback === undefined || (typeof fallback === "object" && JSON.stringify(fallback).length === 2);
}
