import type { JsonSchema } from "@protoport/command-line/settings";
import { settingRows } from "./setting-flags.ts";
import { proxyConfigurationType } from "./setting-table.ts";

/** Returns the configuration file's JSON Schema. */
export function proxyConfigurationSchema(): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of protoport",
    ...proxyConfigurationType.schema,
  };
}

/** Returns the table in protoport/docs/reference/proxy-configuration.md, as Markdown lines. */
export function settingTable(): string[] {
  const rows = settingRows().map(({ path, type, about, fallback, isRequired, flags }) => {
    const initial = isRequired ? ", required" : fallback === undefined ? "" : `, \`${JSON.stringify(fallback)}\``;
    const names = [path, ...flags.map(({ name }) => `--${name}`)].map((name) => `\`${name}\``).join(" ");
    return `| ${names} | ${type}${initial} | ${about.replaceAll("|", "\\|")} |`;
  });
  return ["| setting and flag | type and default | meaning |", "|---|---|---|", ...rows];
}
