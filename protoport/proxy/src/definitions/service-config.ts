import { type ExternalHttpRule, parseHttpRules } from "@protoport/gateway/rest";
import { readLocatedYaml, readYaml, YamlProblem, type YamlValue } from "./read-yaml.ts";

/** Maximum config size in bytes. 4 MiB is ten times as large as the largest config for a Google API. */
export const maxServiceConfigBytes: number = 4 * 1024 * 1024;

/**
 * Parses the HTTP rules in a service config, which is a google.api.Service in YAML or JSON, as in grpc-gateway
 * (`grpc_api_configuration`). Other members are ignored. A plain google.api.Http, `rules: […]`, is accepted too.
 *
 * @throws Error that describes the problem; for YAML, with line and column
 */
export function parseServiceRules(text: string): readonly ExternalHttpRule[] {
  const isJson = /^\s*\{/.test(text);
  const config: unknown = isJson ? JSON.parse(text) : readYaml(text);
  if (typeof config !== "object" || config === null)
    throw new Error("the member http, which holds the rules, is missing");
  if ("http" in config) return parseHttpRules(JSON.stringify(config.http));
  if (!("rules" in config)) throw new Error("the member http, which holds the rules, is missing");
  // For JSON, the original text is parsed, because JSON.parse drops duplicate members.
  return parseHttpRules(isJson ? text : JSON.stringify(config));
}

/**
 * Returns the line and column of each selector in a service config. If several rules have the same selector, returns
 * the last position. Returns no positions for JSON that is not YAML.
 */
export function locateSelectors(text: string): ReadonlyMap<string, readonly [line: number, column: number]> {
  const places = new Map<string, readonly [number, number]>();
  const root = locateSelector(text);
  for (const rule of yamlItemsOf(memberOf(memberOf(root, "http") ?? root, "rules"))) {
    const selector = memberOf(rule, "selector");
    if (typeof selector?.value === "string") places.set(selector.value, [selector.line, selector.column]);
  }
  return places;
}

function locateSelector(text: string): YamlValue | undefined {
  try {
    return readLocatedYaml(text);
  } catch (error) {
    if (error instanceof YamlProblem) return undefined;
    throw error;
  }
}

function memberOf(parent: YamlValue | undefined, name: string): YamlValue | undefined {
  return parent?.value instanceof Map ? parent.value.get(name) : undefined;
}

function yamlItemsOf(list: YamlValue | undefined): readonly YamlValue[] {
  return Array.isArray(list?.value) ? list.value : [];
}
