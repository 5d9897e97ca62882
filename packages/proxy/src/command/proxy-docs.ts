import type { DescService } from "@bufbuild/protobuf";
import { createDocsPage } from "@plantstore/docs-page";
import { createOpenApiAsync, type Endpoint, type OpenApiOptions, type RestOptions } from "@plantstore/gateway";

/** The endpoints of the API description. */
export interface ProxyDocs {
  readonly endpoints: readonly Endpoint[];
  /** Discards the description; the next request creates a new one. */
  renew(): void;
}

/**
 * Creates the description of a proxy.
 *
 * @param services - returns the services; called at the first request
 */
export function createProxyDocs(
  services: () => readonly DescService[],
  rest: RestOptions,
  further: Pick<OpenApiOptions, "mcp" | "validation">,
): ProxyDocs {
  const create = (): readonly Endpoint[] =>
    createDocsPage({
      document: () => {
        const served = services();
        const title = served.map(({ typeName }) => typeName).join(", ");
        return createOpenApiAsync(served, {
          info: { title, version: "1.0.0" },
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
