import { type OutsideHttpRule, parseHttpRules } from "@plantstore/gateway/rest";
import { readYaml } from "./read-yaml.ts";

/** Bytes of a config that is read. 4 MiB: ten times the largest one of Google's. */
export const serviceConfigMaxBytes: number = 4 * 1024 * 1024;

/**
 * Reads the HTTP rules of a service config, a google.api.Service as YAML or JSON, as grpc-gateway takes one
 * (`grpc_api_configuration`); its other members are not looked at. A google.api.Http alone, `rules: […]`, is read too.
 *
 * @throws Error that says what is wrong, for YAML with line and column
 */
export function parseServiceRules(text: string): readonly OutsideHttpRule[] {
  const isJson = /^\s*\{/.test(text);
  const config: unknown = isJson ? JSON.parse(text) : readYaml(text);
  if (typeof config !== "object" || config === null) throw new Error("it has no http, which has the rules");
  if ("http" in config) return parseHttpRules(JSON.stringify(config.http));
  if (!("rules" in config)) throw new Error("it has no http, which has the rules");
  // What was JSON is read as it is: JSON.parse has dropped members that are there twice.
  return parseHttpRules(isJson ? text : JSON.stringify(config));
}
