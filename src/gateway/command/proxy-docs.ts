import type { DescService } from "@bufbuild/protobuf";
import { createDocsPage } from "../docs-page/index.ts";
import { createOpenApi, type Endpoint, readComments, type RestOptions } from "../index.ts";

/** What a description is made of. */
interface Described {
  readonly services: readonly DescService[];
  readonly descriptorSets: readonly Uint8Array[];
}

/** The endpoints of a description that a reload replaces. */
export interface ProxyDocs {
  readonly endpoints: readonly Endpoint[];
  /** Describes anew what is served, when it is asked for. */
  renew(): void;
}

/** Creates the description of what a proxy serves. @param described - returns it; called when there is a request */
export function createProxyDocs(described: () => Described, rest: RestOptions): ProxyDocs {
  const create = (): readonly Endpoint[] => createDocsPage({ document: () => describe(described(), rest), open: true });
  let current = create();
  return {
    endpoints: current.map((endpoint, at) => ({
      ...endpoint,
      answer: (request) => (current[at] ?? endpoint).answer(request),
    })),
    renew: () => {
      current = create();
    },
  };
}

function describe({ services, descriptorSets }: Described, rest: RestOptions): string {
  const title = services.map(({ typeName }) => typeName).join(", ");
  const comments = new Map(descriptorSets.flatMap((set) => [...readComments(set)]));
  return JSON.stringify(createOpenApi(services, { info: { title, version: "1.0.0" }, comments, rest }));
}
