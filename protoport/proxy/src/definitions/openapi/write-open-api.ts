import { requiredScopesOf } from "@protoport/auth";
import { serializeDocument } from "@protoport/docs-page";
import {
  createOpenApi,
  documentBaseOf,
  type OpenApiBase,
  type OpenApiInfo,
  type OpenApiOptions,
  type OpenApiSecurityScheme,
} from "@protoport/gateway/openapi";
import { withoutRpcs } from "@protoport/gateway/rest";
import type { Definition } from "../definition.ts";

/** An OpenAPI document's file format. */
export type DocumentFormat = "json" | "yaml";

/** Options for {@link writeOpenApi}: those of `createOpenApi`, and the format. */
export interface DocumentOptions extends Partial<Omit<OpenApiOptions, "info">> {
  /** The members that replace those of the definition's option `openapiv2_swagger`. */
  readonly info?: Partial<OpenApiInfo>;
  /** Default `json`. */
  readonly format?: DocumentFormat;
}

/**
 * Writes a definition's OpenAPI document, as bytes in UTF-8. A server with the same options sends the same bytes. `info`,
 * `servers`, `securitySchemes` and `security` default to those of the option `openapiv2_swagger`. Operations require the
 * scopes of their RPC's option `protoport.auth.v1.required_scopes`.
 *
 * @throws Error that lists every problem in the HTTP rules, or TypeError for an invalid option
 */
export async function writeOpenApi(
  { services, hiddenRpcs }: Definition,
  { format = "json", ...options }: DocumentOptions = {},
): Promise<Uint8Array> {
  const { info, servers, securitySchemes, security, rest = {} } = options;
  const base = documentBaseOf(services, {
    ...(info && { info }),
    ...(servers && { servers }),
    ...(securitySchemes && { securitySchemes }),
    ...(security && { security }),
  });
  const document = createOpenApi(services, {
    describeSecurity: describeScopes(base),
    ...options,
    ...base,
    rest: withoutRpcs(rest, hiddenRpcs),
  });
  const { json, yaml } = await serializeDocument(document);
  return format === "json" ? json : await yaml();
}

/** Returns a function that returns an RPC's requirements with the scopes of its option, or `undefined` without them. */
function describeScopes({
  securitySchemes = {},
  security = [Object.fromEntries(Object.keys(securitySchemes).map((name) => [name, []]))],
}: OpenApiBase): NonNullable<OpenApiOptions["describeSecurity"]> {
  if (Object.keys(securitySchemes).length === 0) return () => undefined;
  return (method) => {
    const scopes = requiredScopesOf(method);
    if (scopes === undefined) return undefined;
    const withScopes = ([name, own]: [string, readonly string[]]): [string, readonly string[]] => {
      return [name, hasScopes(securitySchemes[name]) ? scopes : own];
    };
    return security.map((each) => Object.fromEntries(Object.entries(each).map(withScopes)));
  };
}

/** Returns whether a credential has scopes. */
function hasScopes(scheme: OpenApiSecurityScheme | undefined): boolean {
  if (scheme?.type === "http") return scheme.scheme.toLowerCase() === "bearer";
  return scheme?.type === "oauth2" || scheme?.type === "openIdConnect";
}
