import { serializeDocument } from "@protoport/docs-page";
import { createOpenApi, documentBaseOf, type OpenApiInfo, type OpenApiOptions } from "@protoport/gateway/openapi";
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
 * `servers`, `securitySchemes` and `security` default to those of the option `openapiv2_swagger`.
 *
 * @throws Error that lists every problem in the HTTP rules, or TypeError for an invalid option
 */
export async function writeOpenApi(
  { services, hiddenRpcs }: Definition,
  { format = "json", ...options }: DocumentOptions = {},
): Promise<Uint8Array> {
  const { info, servers, securitySchemes, security, rest = {} } = options;
  const document = createOpenApi(services, {
    ...options,
    ...documentBaseOf(services, {
      ...(info && { info }),
      ...(servers && { servers }),
      ...(securitySchemes && { securitySchemes }),
      ...(security && { security }),
    }),
    rest: withoutRpcs(rest, hiddenRpcs),
  });
  const { json, yaml } = await serializeDocument(document);
  return format === "json" ? json : await yaml();
}
