import { type DescFile, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type Info,
  openapiv2_swagger,
  Scheme,
  type SecurityRequirement,
  type SecurityScheme,
  SecurityScheme_Flow as Flow,
  SecurityScheme_In as Place,
  SecurityScheme_Type as Type,
  type Swagger,
} from "../protobuf/gen/protoc-gen-openapiv2/options/annotations_pb.ts";
import type { OpenApiOptions } from "./create-open-api.ts";
import type {
  OpenApiInfo,
  OpenApiSecurityRequirement,
  OpenApiSecurityScheme,
  OpenApiServer,
} from "./open-api-document.ts";

/** The members of an OpenAPI document that concern the entire interface. */
export interface OpenApiBase extends Pick<OpenApiOptions, "securitySchemes" | "security"> {
  readonly info?: Partial<OpenApiInfo>;
  readonly servers?: readonly OpenApiServer[];
}

/**
 * Returns the options for `createOpenApi` from grpc-gateway's option `openapiv2_swagger` in the services' files. If
 * several files set a member, the first file's value is used. Security schemes come from all files. The default title
 * names the services, and the default version is 1.0.0.
 *
 * @param replacing - the members that replace those in the files
 */
export function documentBaseOf(
  services: readonly DescService[],
  replacing: OpenApiBase = {},
): OpenApiBase & Pick<OpenApiOptions, "info"> {
  const { security, ...ofFiles } = baseOfFiles(new Set(services.map(({ file }) => file)));
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

function baseOfFiles(files: ReadonlySet<DescFile>): OpenApiBase {
  const bases = [...files].map(baseOfFile);
  const securitySchemes = Object.assign({}, ...bases.toReversed().map((base) => base.securitySchemes));
  return {
    ...Object.assign({}, ...bases.toReversed()),
    ...(Object.keys(securitySchemes).length > 0 && { securitySchemes }),
  };
}

/** Returns the members that a file's option sets. A malformed option is ignored. */
function baseOfFile(file: DescFile): OpenApiBase {
  try {
    return hasOption(file, openapiv2_swagger) ? toBase(getOption(file, openapiv2_swagger)) : {};
  } catch {
    return {};
  }
}

function toBase({ info, securityDefinitions, security, ...server }: Swagger): OpenApiBase {
  const schemes = Object.entries(securityDefinitions?.security ?? {}).flatMap(([name, value]) => {
    const scheme = toScheme(value);
    return scheme === undefined ? [] : [[name, scheme] as const];
  });
  const known = new Set(schemes.map(([name]) => name));
  const requirements = security.map(toRequirement);
  // createOpenApi refuses requirements for schemes that it does not know.
  const areKnown = requirements.every((requirement) => Object.keys(requirement).every((name) => known.has(name)));
  const servers = toServers(server);
  return {
    ...(info && { info: toInfo(info) }),
    ...(servers.length > 0 && { servers }),
    ...(schemes.length > 0 && { securitySchemes: Object.fromEntries(schemes) }),
    ...(security.length > 0 && areKnown && { security: requirements }),
  };
}

function toInfo({ title, description, termsOfService, contact, license, version }: Info): Partial<OpenApiInfo> {
  return {
    ...withoutEmpty({ title, description, termsOfService, version }),
    ...(contact && { contact: withoutEmpty({ name: contact.name, url: contact.url, email: contact.email }) }),
    ...(license && { license: { name: license.name, ...withoutEmpty({ url: license.url }) } }),
  };
}

/** Returns the members that are set. A string field of proto3 that is not set is empty. */
function withoutEmpty<Name extends string>(members: Readonly<Record<Name, string>>): Partial<Record<Name, string>> {
  const given: Partial<Record<Name, string>> = { ...members };
  for (const name in members) if (members[name] === "") delete given[name];
  return given;
}

/** The URL schemes, without WebSockets. */
const urlSchemes: ReadonlyMap<Scheme, string> = new Map([
  [Scheme.HTTP, "http"],
  [Scheme.HTTPS, "https"],
]);

function toServers({
  host,
  basePath,
  schemes,
}: Pick<Swagger, "host" | "basePath" | "schemes">): readonly OpenApiServer[] {
  const path = basePath.replace(/\/+$/, "");
  if (host === "") return path === "" ? [] : [{ url: path }];
  const known = schemes.flatMap((scheme) => urlSchemes.get(scheme) ?? []);
  // A URL without a scheme has the document's scheme.
  return known.length === 0
    ? [{ url: `//${host}${path}` }]
    : known.map((scheme) => ({ url: `${scheme}://${host}${path}` }));
}

const places: ReadonlyMap<Place, "query" | "header"> = new Map([
  [Place.QUERY, "query"],
  [Place.HEADER, "header"],
]);

const flows: ReadonlyMap<Flow, "implicit" | "password" | "clientCredentials" | "authorizationCode"> = new Map([
  [Flow.IMPLICIT, "implicit"],
  [Flow.PASSWORD, "password"],
  [Flow.APPLICATION, "clientCredentials"],
  [Flow.ACCESS_CODE, "authorizationCode"],
]);

/** Converts an OpenAPI 2 Security Scheme Object to OpenAPI 3. Returns `undefined` if the object is not complete. */
function toScheme(scheme: SecurityScheme): OpenApiSecurityScheme | undefined {
  const { type, name, authorizationUrl, tokenUrl, scopes } = scheme;
  const description = withoutEmpty({ description: scheme.description });
  if (type === Type.BASIC) return { type: "http", scheme: "basic", ...description };
  const place = places.get(scheme.in);
  if (type === Type.API_KEY && place !== undefined && name !== "")
    return { type: "apiKey", name, in: place, ...description };
  const flow = flows.get(scheme.flow);
  if (type !== Type.OAUTH2 || flow === undefined) return undefined;
  const urls = withoutEmpty({ authorizationUrl, tokenUrl });
  return { type: "oauth2", flows: { [flow]: { ...urls, scopes: scopes?.scope ?? {} } }, ...description };
}

function toRequirement({ securityRequirement }: SecurityRequirement): OpenApiSecurityRequirement {
  return Object.fromEntries(Object.entries(securityRequirement).map(([name, { scope }]) => [name, scope]));
}
