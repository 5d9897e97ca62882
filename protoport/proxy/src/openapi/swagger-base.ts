import type { DescService } from "@bufbuild/protobuf";
import type { OpenApiInfo, OpenApiOptions, OpenApiSecurityScheme, OpenApiServer } from "@protoport/gateway/openapi";
import {
  type SwaggerOptions,
  swaggerOptionsOf,
  type SwaggerRequirement,
  type SwaggerScheme,
} from "@protoport/gateway/descriptors";
import type { DocumentBase } from "./base-file.ts";

/**
 * Returns the document options from `openapiv2_swagger` in the services' files. The default title names the services,
 * and the default version is 1.0.0.
 *
 * @param replacing - the options that replace the options in the files
 */
export function describeServices(
  services: readonly DescService[],
  replacing: DocumentBase,
): DocumentBase & Pick<OpenApiOptions, "info"> {
  const { security, ...ofFiles } = baseOfServices(services);
  return {
    ...ofFiles,
    // Requirements are omitted if `replacing` has other schemes, because the requirements name schemes in the files.
    ...(security !== undefined && replacing.securitySchemes === undefined && { security }),
    ...replacing,
    info: {
      title: services.map(({ typeName }) => typeName).join(", "),
      version: "1.0.0",
      ...ofFiles.info,
      ...replacing.info,
    },
  };
}

/**
 * Returns the document options from `openapiv2_swagger` in the services' files. If several files set an option, the
 * first file's value is used. Security schemes come from all files.
 */
function baseOfServices(services: readonly DescService[]): DocumentBase {
  const bases = [...new Set(services.map(({ file }) => file))].map(swaggerOptionsOf).map(toBase);
  const securitySchemes = Object.assign({}, ...bases.toReversed().map((base) => base.securitySchemes));
  return {
    ...firstOf(bases, "info"),
    ...firstOf(bases, "servers"),
    ...firstOf(bases, "security"),
    ...(Object.keys(securitySchemes).length > 0 && { securitySchemes }),
  };
}

function firstOf(bases: readonly DocumentBase[], name: keyof DocumentBase): DocumentBase {
  const value = bases.find((base) => base[name] !== undefined)?.[name];
  return value === undefined ? {} : { [name]: value };
}

function toBase({ info, security_definitions, security, ...server }: SwaggerOptions): DocumentBase {
  const schemes = Object.entries(security_definitions?.security ?? {}).flatMap(([name, value]) => {
    const scheme = toScheme(value);
    return scheme === undefined ? [] : [[name, scheme] as const];
  });
  const known = new Set(schemes.map(([name]) => name));
  // createOpenApi refuses requirements for schemes that it does not know.
  const requirements = (security ?? [])
    .map(toRequirement)
    .filter((requirement) => Object.keys(requirement).every((name) => known.has(name)));
  const servers = toServers(server);
  return {
    ...(info && { info: toInfo(info) }),
    ...(servers.length > 0 && { servers }),
    ...(schemes.length > 0 && { securitySchemes: Object.fromEntries(schemes) }),
    ...(security && requirements.length === security.length && { security: requirements }),
  };
}

function toInfo({ terms_of_service, ...info }: NonNullable<SwaggerOptions["info"]>): Partial<OpenApiInfo> {
  return { ...info, ...(terms_of_service !== undefined && { termsOfService: terms_of_service }) };
}

/** The URL schemes by number in the enum Scheme, without WebSockets. */
const urlSchemes = new Map([
  [1, "http"],
  [2, "https"],
]);

function toServers({ host, base_path = "", schemes = [] }: SwaggerOptions): readonly OpenApiServer[] {
  const path = base_path.replace(/\/+$/, "");
  if (host === undefined) return path === "" ? [] : [{ url: path }];
  const known = schemes.flatMap((scheme) => urlSchemes.get(scheme) ?? []);
  // A URL without a scheme has the document's scheme.
  return known.length === 0
    ? [{ url: `//${host}${path}` }]
    : known.map((scheme) => ({ url: `${scheme}://${host}${path}` }));
}

const places = new Map<unknown, "query" | "header">([
  [1, "query"],
  [2, "header"],
]);

const flows = new Map<unknown, "implicit" | "password" | "clientCredentials" | "authorizationCode">([
  [1, "implicit"],
  [2, "password"],
  [3, "clientCredentials"],
  [4, "authorizationCode"],
]);

/** Converts an OpenAPI 2 Security Scheme Object to OpenAPI 3. Returns `undefined` if the object is not complete. */
function toScheme(scheme: SwaggerScheme): OpenApiSecurityScheme | undefined {
  const { type, name, authorization_url, token_url, scopes } = scheme;
  const description = scheme.description === undefined ? {} : { description: scheme.description };
  if (type === 1) return { type: "http", scheme: "basic", ...description };
  const place = places.get(scheme.in);
  if (type === 2 && place !== undefined && name !== undefined)
    return { type: "apiKey", name, in: place, ...description };
  const flow = flows.get(scheme.flow);
  if (type !== 3 || flow === undefined) return undefined;
  const urls = { authorizationUrl: authorization_url, tokenUrl: token_url };
  return { type: "oauth2", flows: { [flow]: { ...urls, scopes: scopes?.scope ?? {} } }, ...description };
}

function toRequirement({ security_requirement = {} }: SwaggerRequirement): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(Object.entries(security_requirement).map(([name, { scope = [] }]) => [name, scope]));
}
