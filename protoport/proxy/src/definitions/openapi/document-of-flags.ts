import { type Flag, type ParsedFlags, readFlag, textOf, textsOf } from "@protoport/command-line";
import { oneOf } from "@protoport/command-line/settings";
import { messageOf } from "@protoport/gateway/errors";
import type { OpenApiBase, OpenApiInfo, OpenApiServer } from "@protoport/gateway/openapi";
import { arrayOf, type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { RestOptions } from "@protoport/gateway/rest";
import { type Definition, selectServices } from "../definition.ts";
import { InputError, readInput, readRules } from "../read-input.ts";
import {
  operationIdsFlag,
  operationIdsOf,
  parseSwitches,
  profileNames,
  switchNames,
  toRestOptions,
  visibilityFlag,
} from "../definition-flags.ts";
import { readYaml } from "../read-yaml.ts";
import { type DocumentFormat, writeOpenApi } from "./write-open-api.ts";

const versions = oneOf(["3.1", "3.2"]);

/** Returns the format for the flags and the path of the output file. @throws UsageError for an unknown format */
export function formatOf(flags: ParsedFlags, path: string | undefined): DocumentFormat {
  return readFlag(flags, "format", oneOf(["json", "yaml"])) ?? (/\.ya?ml$/.test(path ?? "") ? "yaml" : "json");
}

/**
 * Writes the OpenAPI document that flags describe.
 *
 * @param warn - called for each binding that OpenAPI cannot describe
 * @throws UsageError, InputError, or the `writeOpenApi` errors
 */
export async function documentOfFlags(
  definition: Definition,
  flags: ParsedFlags,
  format: DocumentFormat,
  warn: (text: string) => void,
): Promise<Uint8Array> {
  const openapi = readFlag(flags, "version", versions) ?? "3.1";
  const selected = selectServices(definition, textsOf(flags["service"]));
  const tools = textsOf(flags["mcp"]);
  // The packages are imported dynamically, because few documents need them.
  const mcp = tools.length > 0 && (await import("@protoport/gateway/mcp")).createMcp({ tools });
  const validation =
    flags["validate"] === true && (await (await import("@protoport/gateway/validation")).openValidation());
  return await writeOpenApi(selected, {
    format,
    openapi: `${openapi}.0`,
    ...operationIdsOf(flags),
    ...(await baseOf(flags)),
    rest: await restOptionsOf(flags),
    ...(mcp !== false && { mcp }),
    ...(validation !== false && { validation }),
    onOmitted: ({ method }, reason) => warn(`${method.parent.typeName}.${method.name} is omitted: ${reason}`),
  });
}

/** Returns the document members. Flags take precedence over the base file. */
async function baseOf(flags: ParsedFlags): Promise<OpenApiBase> {
  const file = textOf(flags["base"]);
  const base = file === undefined ? {} : await readBaseFile(file);
  const [title, version, servers] = [textOf(flags["title"]), textOf(flags["api-version"]), textsOf(flags["server"])];
  return {
    ...base,
    ...(servers.length > 0 && { servers: servers.map((url) => ({ url })) }),
    info: { ...base.info, ...(title !== undefined && { title }), ...(version !== undefined && { version }) },
  };
}

async function restOptionsOf(flags: ParsedFlags): Promise<RestOptions> {
  const profile = readFlag(flags, "rest-profile", oneOf(profileNames));
  return {
    ...toRestOptions(parseSwitches(textsOf(flags["rest"])), profile),
    omit: textsOf(flags["omit"]),
    rules: (await Promise.all(textsOf(flags["rules"]).map(readRules))).flat(),
    ignoreUnregistered: true,
  };
}

/** The flags for an OpenAPI document, which the command and the plugin share. */
export const documentFlags: Readonly<Record<string, Flag>> = {
  format: { value: "FORMAT", about: "json or yaml; default: the extension of --out, otherwise json" },
  version: { value: "VERSION", about: "the version of OpenAPI, 3.1 or 3.2; default 3.1" },
  base: {
    value: "FILE",
    about:
      "info, servers, securitySchemes and security of the document, in YAML or JSON; default those of the definition",
  },
  title: { value: "TEXT", about: "the title in info; default the names of the services" },
  "api-version": { value: "TEXT", about: "the version in info; default 1.0.0" },
  server: { value: "URL", about: "where the interface is served; default /", multiple: true },
  "operation-ids": operationIdsFlag,
  service: { value: "NAME", about: "describes only this service; a NAME that ends with * is a prefix", multiple: true },
  rest: {
    value: "OPTION",
    about: `the REST options of the server: ${switchNames.join(", ")}`,
    multiple: true,
  },
  "rest-profile": {
    value: "NAME",
    about: `the profile of the server: ${profileNames.join(", ")}; default strict`,
  },
  omit: { value: "RPC", about: "excludes this RPC, written as package.Service.Method", multiple: true },
  rules: {
    value: "FILE",
    about: "HTTP rules that replace annotations: a service config in YAML or JSON",
    multiple: true,
  },
  mcp: { value: "RPC", about: "adds the names of the tools that --mcp of the server selects", multiple: true },
  visibility: visibilityFlag,
  validate: { about: "describes the buf.validate rules of requests, which --validate of the server checks" },
};

/** Maximum base file size in bytes. 1 MiB is enough, because descriptions are the only long values. */
const maxBaseBytes = 1024 * 1024;

const serverNames: OptionNames<OpenApiServer> = { url: required, description: true };

const infoNames: OptionNames<Partial<OpenApiInfo>> = {
  title: true,
  version: true,
  summary: true,
  description: true,
  license: { name: required, identifier: true, url: true },
  contact: { name: true, url: true, email: true },
  termsOfService: true,
};

const baseNames: OptionNames<OpenApiBase> = {
  info: infoNames,
  servers: arrayOf(serverNames),
  securitySchemes: {},
  security: arrayOf(),
};

const schemeTypes = ["http", "apiKey", "oauth2", "openIdConnect", "mutualTLS"];

/** Reads a base file. @throws InputError if the file is not readable, or a member is unknown or has the wrong type */
async function readBaseFile(path: string): Promise<OpenApiBase> {
  const text = await readInput(path, maxBaseBytes);
  try {
    const value = readYaml(text);
    requireBase(value);
    return value;
  } catch (error) {
    throw new InputError(`cannot use ${path}: ${messageOf(error)}`);
  }
}

function requireBase(value: unknown): asserts value is OpenApiBase {
  const { securitySchemes, ...others }: Readonly<Record<string, unknown>> = Object(value);
  refuseUnknownOptions<OpenApiBase>(value === null ? {} : others, baseNames, "the base file");
  requireTexts(others["info"], "info");
  requireTexts(others["servers"], "servers");
  for (const [name, scheme] of Object.entries(Object(securitySchemes))) {
    const { type }: { readonly type?: unknown } = Object(scheme);
    if (!schemeTypes.some((known) => known === type))
      throw new Error(`securitySchemes.${name}.type must be one of ${schemeTypes.join(", ")}`);
  }
}

/** Requires that all nested values are strings, as in the objects Info and Server. */
function requireTexts(value: unknown, path: string): void {
  if (value === undefined || typeof value === "string") return;
  if (typeof value !== "object" || value === null)
    throw new Error(`${path} must be a string, got ${JSON.stringify(value)}`);
  for (const [name, each] of Object.entries(value)) requireTexts(each, `${path}.${name}`);
}
