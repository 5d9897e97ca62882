import type { DescService } from "@bufbuild/protobuf";
import type { CorsOptions, GatewayOptions } from "@protoport/gateway";
import type { DrainTimes } from "@protoport/gateway/health";
import type { OpenApiInfo, OperationIds } from "@protoport/gateway/openapi";
import { createNameFilter, type ExternalHttpRule, type RestOptions } from "@protoport/gateway/rest";
import { readRules, toRestOptions } from "../definitions/index.ts";
import type {
  AuthenticationSection,
  MethodNameSection,
  ProxyConfiguration,
  ReadSettings,
  RestServiceSection,
} from "../settings/index.ts";
import { type CertificateFiles, toCertificateFiles } from "./pem-files.ts";
import { toUpstreamOptions } from "./upstream-settings.ts";

type JsonOptions = NonNullable<GatewayOptions["jsonOptions"]>;

/** A file of HTTP rules. */
interface RuleFile {
  readonly path: string;
  readonly rules: readonly ExternalHttpRule[];
}

/** The proxy command's settings. */
export interface ProxySettings {
  readonly upstreams: ReturnType<typeof toUpstreamOptions>;
  readonly rest: RestOptions;
  /** The files that `rest.rules` names. */
  readonly ruleFiles: readonly RuleFile[];
  /** The JSON options for responses. */
  readonly json: JsonOptions;
  /** The services and RPCs (`package.Service.Method`) that `methodConfig` names. */
  readonly configuredMethods: readonly string[];
  /** The name of each item in `rest.services`. */
  readonly restServices: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly tls: CertificateFiles | undefined;
  readonly cors: CorsOptions | undefined;
  readonly trustedProxies: readonly string[] | undefined;
  readonly authentication: AuthenticationSection | undefined;
  readonly rateLimit: ProxyConfiguration["rateLimit"];
  readonly accessLog: ProxyConfiguration["accessLog"];
  /** Maximum bytes in a header or trailer section in both directions. */
  readonly headerBytes: number;
  /** Maximum bytes in a request message. */
  readonly requestBytes: number;
  readonly hasDocs: boolean;
  /** The members that replace those of the definition in the OpenAPI document. */
  readonly info: Partial<OpenApiInfo>;
  /** The names in the operation ids of the OpenAPI document. */
  readonly operationIds: OperationIds;
  /** The selectors in `mcp.tools`, which choose the RPCs that MCP clients may call. */
  readonly tools: readonly string[] | undefined;
  /** The names in `mcp.paramHeaders`, by field. */
  readonly paramHeaders: Readonly<Record<string, string>> | undefined;
  readonly visibility: ProxyConfiguration["visibility"];
  /** The source of the validation rules: nothing, the descriptor files, or all upstreams. */
  readonly validates: "none" | "files" | "upstreams";
  readonly admin: { readonly host: string; readonly port: number } | undefined;
  /** Whether the server is ready only if all upstreams are ready. Otherwise, one upstream is enough. */
  readonly requiresAll: boolean;
  readonly drain: DrainTimes;
  readonly waitsForDescriptors: boolean;
  /** Returns an error that names the setting's file position or flag. */
  readonly problemAt: ReadSettings["problemAt"];
}

/**
 * Returns the proxy command's settings, with the contents from the files that the settings name.
 *
 * @throws SettingsProblem for contradictions, InputError for an invalid file
 */
export async function toProxySettings(read: ReadSettings): Promise<ProxySettings> {
  const { settings, problemAt } = read;
  const { listen, cors, docs, requireAll, drain, wait, rateLimit, authentication } = settings;
  if (rateLimit.perPrincipal !== undefined && authentication === undefined)
    throw problemAt("rateLimit.perPrincipal", "requires authentication, because calls without it have no caller");
  const ruleFiles = await Promise.all(
    settings.rest.rules.map(async (path): Promise<RuleFile> => ({ path, rules: await readRules(path) })),
  );
  return {
    upstreams: toUpstreamOptions(read),
    rest: toRest(
      read,
      ruleFiles.flatMap(({ rules }) => rules),
    ),
    ruleFiles,
    json: toJson(settings.rest.json),
    configuredMethods: settings.methodConfig.flatMap(({ name }) => name.flatMap(methodNamesOf)),
    restServices: settings.rest.services.map(({ name }) => name),
    host: listen.host,
    port: listen.port,
    tls: tlsOf(read),
    cors: cors && toCors(cors),
    trustedProxies: settings.trustedProxies,
    authentication,
    rateLimit,
    accessLog: settings.accessLog,
    headerBytes: settings.headerBytes,
    requestBytes: settings.requestBytes,
    hasDocs: docs,
    info: documentInfoOf(read),
    operationIds: settings.openapi.operationIds,
    tools: settings.mcp?.tools,
    paramHeaders: settings.mcp?.paramHeaders,
    visibility: settings.visibility,
    validates: settings.validateReflected ? "upstreams" : settings.validate ? "files" : "none",
    admin: adminOf(read),
    requiresAll: requireAll,
    drain,
    waitsForDescriptors: wait,
    problemAt,
  };
}

function adminOf({ settings: { listen, admin }, problemAt }: ReadSettings): ProxySettings["admin"] {
  if (admin.port === undefined) return undefined;
  const { host = listen.host, port } = admin;
  if (port !== 0 && port === listen.port && host === listen.host)
    throw problemAt("admin.port", `must differ from listen.port, got ${port}`);
  return { host, port };
}

function documentInfoOf({ settings: { openapi }, problemAt }: ReadSettings): Partial<OpenApiInfo> {
  const { operationIds: _, ...info } = openapi;
  if (info.license?.identifier !== undefined && info.license.url !== undefined)
    throw problemAt("openapi.license.url", "must not be combined with openapi.license.identifier; use one of them");
  return info;
}

/** Returns the service or RPC that a name in `methodConfig` selects, or nothing for the default item. */
function methodNamesOf({ service, method }: MethodNameSection): readonly string[] {
  return service === "" ? [] : [method === "" ? service : `${service}.${method}`];
}

function tlsOf({ settings: { listen }, problemAt }: ReadSettings): CertificateFiles | undefined {
  if (listen.tls === undefined) return undefined;
  const { cert, key } = listen.tls;
  if (cert === undefined || key === undefined)
    throw problemAt(`listen.tls${key === undefined ? ".cert" : ".key"}`, "requires both a certificate and its key");
  return toCertificateFiles(cert, key);
}

function toRest({ settings, problemAt }: ReadSettings, rules: readonly ExternalHttpRule[]): RestOptions {
  const { profile, json, options, services, ...rest } = settings.rest;
  if (rest.errors !== undefined && rest.errorBody !== undefined)
    throw problemAt("rest.errorBody", "must not be combined with rest.errors; use one of them");
  const enabled = json.int64 === "numbers" ? [...options, "int64Numbers" as const] : options;
  const { service: ofAll, ...others } = toRestOptions(new Set(enabled), profile);
  const items = services.map((item) => ({
    matches: createNameFilter([item.name]),
    options: restOptionsOfService(item),
  }));
  return {
    ...others,
    ...rest,
    service: (service: DescService) => ({
      ...ofAll?.(service),
      ...items.find(({ matches }) => matches?.(service.typeName))?.options,
    }),
    rules,
    ignoreUnregistered: true,
  };
}

function toJson({ names, enums, unpopulated }: ProxyConfiguration["rest"]["json"]): JsonOptions {
  return {
    useProtoFieldName: names === "proto",
    enumAsInteger: enums === "numbers",
    ...(unpopulated !== undefined && { alwaysEmitImplicit: unpopulated }),
  };
}

function restOptionsOfService({
  profile,
  options,
}: RestServiceSection): ReturnType<NonNullable<RestOptions["service"]>> {
  return { ...Object.fromEntries(options.map((name) => [name, true])), ...(profile && { profile }) };
}

function toCors(cors: NonNullable<ProxyConfiguration["cors"]>): CorsOptions {
  return { ...cors, origins: cors.origins.includes("*") ? "*" : cors.origins };
}
