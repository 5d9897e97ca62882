import type { DescService } from "@bufbuild/protobuf";
import { createDocsPage } from "@protoport/docs-page";
import { createOpenApiAsync, documentBaseOf, type OpenApiBase, type OpenApiOptions } from "@protoport/gateway/openapi";
import type { Endpoint, RestOptions } from "@protoport/gateway";

/** The API description's endpoints. */
export interface ProxyDocs {
  readonly endpoints: readonly Endpoint[];
  /** Discards the description. The next request creates a new description. */
  renew(): void;
}

/** Creates a proxy's description. `getServed` returns the served services, and is called at the first request. */
export function createProxyDocs(
  getServed: () => { readonly services: readonly DescService[]; readonly rest: RestOptions } | undefined,
  {
    info = {},
    ...further
  }: Pick<OpenApiBase, "info"> &
    Pick<OpenApiOptions, "describeSecurity" | "jsonOptions" | "mcp" | "securitySchemes" | "validation">,
): ProxyDocs {
  const create = (): readonly Endpoint[] =>
    createDocsPage({
      document: () => {
        const { services = [], rest = {} } = getServed() ?? {};
        const { securitySchemes } = further;
        return createOpenApiAsync(services, {
          // The page sends credentials to the servers in the document, so an upstream must not add a server.
          ...documentBaseOf(services, { info, servers: [{ url: "/" }], ...(securitySchemes && { securitySchemes }) }),
          rest,
          ...further,
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
