import { readLocatedYaml, YamlProblem, type YamlValue } from "./read-yaml.ts";

/**
 * Returns the line and column of each selector in a service config. If several rules have the same selector, returns
 * the last position. Returns no positions for JSON that is not YAML.
 */
export function locateSelectors(text: string): ReadonlyMap<string, readonly [line: number, column: number]> {
  const places = new Map<string, readonly [number, number]>();
  const root = locate(text);
  for (const rule of itemsOf(memberOf(memberOf(root, "http") ?? root, "rules"))) {
    const selector = memberOf(rule, "selector");
    if (typeof selector?.value === "string") places.set(selector.value, [selector.line, selector.column]);
  }
  return places;
}

function locate(text: string): YamlValue | undefined {
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

function itemsOf(list: YamlValue | undefined): readonly YamlValue[] {
  return Array.isArray(list?.value) ? list.value : [];
}
