import type { OperationIds } from "@protoport/gateway/openapi";
import type { RestOptions, RestProfile } from "@protoport/gateway/rest";
import type { SwitchName } from "../definitions/index.ts";
import type { AuthenticationSection } from "./authentication-table.ts";
import type { MethodConfigSection } from "./method-config-table.ts";
import type { UpstreamSection } from "./upstream-table.ts";

/** The proxy's configuration from its file and flags. The setting tables explain each member. */
export interface ProxyConfiguration {
  readonly listen: ListenSection;
  readonly admin: { readonly host?: string; readonly port?: number };
  readonly upstreams: readonly UpstreamSection[];
  readonly methodConfig: readonly MethodConfigSection[];
  readonly rest: RestSection;
  readonly authentication?: AuthenticationSection;
  readonly rateLimit: RateLimitSection;
  readonly cors?: CorsSection;
  readonly trustedProxies?: readonly string[];
  readonly headerBytes: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly docs: boolean;
  readonly openapi: OpenApiSection;
  readonly mcp?: { readonly tools: readonly string[]; readonly paramHeaders: Readonly<Record<string, string>> };
  readonly visibility?: { readonly allow: readonly string[] };
  readonly validate: boolean;
  readonly validateReflected: boolean;
  readonly accessLog: "off" | "errors" | "all";
  readonly drain: { readonly delayMs: number; readonly timeoutMs: number };
  readonly requireAll: boolean;
  readonly wait: boolean;
}

/** The members of the OpenAPI document's Info Object, and the names in its operation ids. */
export interface OpenApiSection {
  readonly title?: string;
  readonly version?: string;
  readonly license?: { readonly name: string; readonly identifier?: string; readonly url?: string };
  readonly operationIds: OperationIds;
}

/** Address and certificate with which the proxy listens. */
export interface ListenSection {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly cert?: string; readonly key?: string };
}

/** Settings for mapping RPCs to REST. */
export interface RestSection {
  readonly profile: RestProfile;
  readonly errors?: NonNullable<RestOptions["errors"]>;
  readonly errorBody?: NonNullable<RestOptions["errorBody"]>;
  readonly json: JsonSection;
  readonly options: readonly SwitchName[];
  readonly services: readonly RestServiceSection[];
  readonly rules: readonly string[];
  readonly omit: readonly string[];
}

/** Settings for JSON in responses. */
export interface JsonSection {
  readonly names: "json" | "proto";
  readonly enums: "names" | "numbers";
  readonly unpopulated?: boolean;
  readonly int64: "strings" | "numbers";
}

/** REST settings for some services. */
export interface RestServiceSection {
  readonly name: string;
  readonly profile?: RestProfile;
  readonly options: readonly Exclude<SwitchName, "fullyDecodeReservedExpansion">[];
}

/** Maximum calls per second. The number is also the maximum burst. */
export interface RateLimitSection {
  readonly perPrincipal?: number;
  readonly perAddress?: number;
}

/** Settings for calls from web pages (CORS). */
export interface CorsSection {
  readonly origins: readonly string[];
  readonly allowedHeaders: readonly string[];
  readonly exposedHeaders: readonly string[];
  readonly maxAgeSeconds?: number;
}
