import { type ParsedFlags, readFlag, textOf, textsOf } from "@protoport/command-line";
import { oneOf } from "@protoport/command-line/settings";
import type { OpenApiBase } from "@protoport/gateway/openapi";
import type { RestOptions } from "@protoport/gateway/rest";
import { type Definition, selectServices } from "../definition.ts";
import { operationIdsOf } from "../operation-ids-flag.ts";
import { readRules } from "../read-rules.ts";
import { parseSwitches, profileNames, toRestOptions } from "../rest-switches.ts";
import { readBaseFile } from "./base-file.ts";
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
