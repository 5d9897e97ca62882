import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { RestBinding } from "../protocols/index.ts";
import { commentOf, type Comments } from "./comments.ts";
import type { OpenApiInfo, OpenApiTag } from "./open-api-document.ts";
import { externalDocsOf, openApiOptionsOf } from "./openapi-options.ts";

/** The tags in a document. Each service has a tag, and RPC options may define other tags. */
export class Tags {
  readonly #byName: ReadonlyMap<string, readonly DescService[]>;

  constructor(services: readonly DescService[]) {
    this.#byName = Map.groupBy(new Set(services), ({ name }) => name);
  }

  /** Returns the tags in an RPC's option `openapiv2_operation`, or else the service's tag. */
  namesOf(method: DescMethod): readonly string[] {
    const { tags = [] } = openApiOptionsOf(method);
    return tags.length > 0 ? tags : [this.#nameOf(method.parent)];
  }

  /** Describes the tags that operations have. Service tags come first. */
  describe(bindings: readonly RestBinding[], comments: Comments, info: OpenApiInfo): readonly OpenApiTag[] {
    const services = new Set(bindings.map(({ method }) => method.parent));
    const unused = new Set(bindings.flatMap(({ method }) => this.namesOf(method)));
    const tags: OpenApiTag[] = [];
    for (const service of services) {
      const name = this.#nameOf(service);
      if (unused.delete(name)) tags.push(describeTag(name, service, comments, info));
    }
    return [...tags, ...[...unused].map((name) => ({ name, description: `The operations with the tag \`${name}\`.` }))];
  }

  // Returns a service's tag. The full name replaces a short name that several services have.
  #nameOf(service: DescService): string {
    const { name, typeName } = service;
    return openApiOptionsOf(service).name || (this.#byName.get(name)?.length === 1 ? name : typeName);
  }
}

function describeTag(name: string, service: DescService, comments: Comments, info: OpenApiInfo): OpenApiTag {
  const comment = commentOf(comments, service);
  // If a document has only one service, the service's comment may already be the document's description.
  const isRedundant = comment === undefined || comment === info.description;
  const description = isRedundant ? `The RPCs of \`${service.typeName}\`.` : comment;
  return { name, description, ...externalDocsOf(service) };
}
