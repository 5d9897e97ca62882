import type { DescService } from "@bufbuild/protobuf";
import { serializeDocument } from "@protoport/docs-page";
import { createOpenApi, documentBaseOf, type OpenApiBase, type OpenApiOptions } from "@protoport/gateway/openapi";
import { createNameFilter, type RestOptions, withoutRpcs } from "@protoport/gateway/rest";
import { type ParsedFlags, readFlag, textOf, textsOf } from "@protoport/command-line";
import { oneOf } from "@protoport/command-line/settings";
import {
  InputError,
  profileNames,
  parseSwitches,
  type ReadServices,
  readRules,
  toRestOptions,
} from "../check/index.ts";
import { readBaseFile } from "./base-file.ts";

const versions = oneOf(["3.1", "3.2"]);

/** An OpenAPI document's file format. */
export type DocumentFormat = "json" | "yaml";

/** Returns the format for the flags and the path of the output file. @throws UsageError for an unknown format */
export function formatOf(flags: ParsedFlags, path: string | undefined): DocumentFormat {
  return readFlag(flags, "format", oneOf(["json", "yaml"])) ?? (/\.ya?ml$/.test(path ?? "") ? "yaml" : "json");
}

/**
 * Creates the OpenAPI document for services. A server with the same options sends the same bytes.
 *
 * @param warn - called for each binding that OpenAPI cannot describe
 * @throws UsageError, InputError, or the `createOpenApi` errors
 */
export async function createDocument(
  read: Pick<ReadServices, "services" | "hiddenRpcs">,
  flags: ParsedFlags,
  format: DocumentFormat,
  warn: (text: string) => void,
): Promise<Uint8Array> {
  const openapi = readFlag(flags, "version", versions) ?? "3.1";
  const isSelected = createNameFilter(textsOf(flags["service"]));
  const services = read.services.filter(({ typeName }) => isSelected?.(typeName) ?? true);
  if (services.length === 0) throw new InputError("no service of the definition matches --service");
  const tools = textsOf(flags["mcp"]);
  // The packages are imported dynamically, because few documents need them.
  const mcp = tools.length > 0 && (await import("@protoport/gateway/mcp")).createMcp({ tools });
  const validation =
    flags["validate"] === true && (await (await import("@protoport/gateway/validation")).openValidation());
  const document = createOpenApi(services, {
    openapi: `${openapi}.0`,
    ...(await baseOf(services, flags)),
    rest: withoutRpcs(await restOptionsOf(flags), read.hiddenRpcs),
    ...(mcp !== false && { mcp }),
    ...(validation !== false && { validation }),
    onOmitted: ({ method }, reason) => warn(`${method.parent.typeName}.${method.name} is omitted: ${reason}`),
  });
  const { json, yaml } = await serializeDocument(document);
  return format === "json" ? json : await yaml();
}

/** Returns the document members. Flags take precedence over the base file, and the base file over the definition. */
async function baseOf(
  services: readonly DescService[],
  flags: ParsedFlags,
): Promise<OpenApiBase & Pick<OpenApiOptions, "info">> {
  const file = textOf(flags["base"]);
  const base = file === undefined ? {} : await readBaseFile(file);
  const [title, version, servers] = [textOf(flags["title"]), textOf(flags["api-version"]), textsOf(flags["server"])];
  return documentBaseOf(services, {
    ...base,
    ...(servers.length > 0 && { servers: servers.map((url) => ({ url })) }),
    info: { ...base.info, ...(title !== undefined && { title }), ...(version !== undefined && { version }) },
  });
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
