import type { DescService } from "@bufbuild/protobuf";
import { createDocsPage } from "@protoport/docs-page";
import { createOpenApiAsync, documentBaseOf, type OpenApiBase, type OpenApiOptions } from "@protoport/gateway/openapi";
import { messageOf } from "@protoport/gateway/errors";
import type { Endpoint, RestOptions } from "@protoport/gateway";

/** The API description's endpoints. */
export interface ProxyDocs {
  readonly endpoints: readonly Endpoint[];
  /** Discards the description. The next request creates a new description. */
  renew(): void;
}

/**
 * Creates a proxy's description.
 *
 * @param getServed - returns the served services. Called at the first request
 * @param warn - called if operation ids have other names than in the options
 */
export function createProxyDocs(
  getServed: () => { readonly services: readonly DescService[]; readonly rest: RestOptions } | undefined,
  {
    info = {},
    ...further
  }: Pick<OpenApiBase, "info"> &
    Pick<
      OpenApiOptions,
      "describeSecurity" | "jsonOptions" | "mcp" | "operationIds" | "securitySchemes" | "validation"
    >,
  warn: (text: string) => void,
): ProxyDocs {
  const create = (): readonly Endpoint[] =>
    createDocsPage({
      document: () => {
        const { services = [], rest = {} } = getServed() ?? {};
        const { securitySchemes } = further;
        const options: OpenApiOptions = {
          // The page sends credentials to the servers in the document, so an upstream must not add a server.
          ...documentBaseOf(services, { info, servers: [{ url: "/" }], ...(securitySchemes && { securitySchemes }) }),
          rest,
          ...further,
        };
        return createOpenApiAsync(services, options).catch((error: unknown) => {
          // Descriptors that an upstream sent after the start may have equal operation ids.
          warn(`the document at /openapi.json has operationIds: full, because ${messageOf(error)}`);
          return createOpenApiAsync(services, { ...options, operationIds: "full" });
        });
      },
      open: true,
    });
  let current = create();
  return {
    endpoints: current.map((endpoint, at) => ({
      ...endpoint,
      handle: (request) => (current[at] ?? endpoint).handle(request),
    })),
    renew: () => {
      current = create();
    },
  };
}
