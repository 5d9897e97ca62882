import type { OpenApiBase, OpenApiInfo, OpenApiServer } from "@protoport/gateway/openapi";
import { messageOf } from "@protoport/gateway/errors";
import { arrayOf, type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { InputError } from "../input-error.ts";
import { readInput } from "../read-input.ts";
import { readYaml } from "../service-config/index.ts";

/** Maximum base file size in bytes. 1 MiB is enough, because descriptions are the only long values. */
const baseMaxBytes = 1024 * 1024;

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
export async function readBaseFile(path: string): Promise<OpenApiBase> {
  const text = await readInput(path, baseMaxBytes);
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
