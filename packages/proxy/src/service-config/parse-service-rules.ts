import { type ExternalHttpRule, parseHttpRules } from "@plantstore/gateway/rest";
import { readYaml } from "./read-yaml.ts";

/** Bytes of the largest config that is read. 4 MiB: ten times the largest one of Google's. */
export const serviceConfigMaxBytes: number = 4 * 1024 * 1024;

/**
 * Parses the HTTP rules of a service config: a google.api.Service in YAML or JSON, as grpc-gateway accepts it
 * (`grpc_api_configuration`). Other members are ignored. A google.api.Http alone, `rules: […]`, is accepted too.
 *
 * @throws Error that describes the problem, for YAML with line and column
 */
export function parseServiceRules(text: string): readonly ExternalHttpRule[] {
  const isJson = /^\s*\{/.test(text);
  const config: unknown = isJson ? JSON.parse(text) : readYaml(text);
  if (typeof config !== "object" || config === null)
    throw new Error("the member http, which holds the rules, is missing");
  if ("http" in config) return parseHttpRules(JSON.stringify(config.http));
  if (!("rules" in config)) throw new Error("the member http, which holds the rules, is missing");
  // Parses the original JSON, because JSON.parse drops duplicate members.
  return parseHttpRules(isJson ? text : JSON.stringify(config));
}
