import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { requireName } from "../http/index.ts";
import { type RestBinding, selectorOf } from "../protocols/index.ts";
import { commentOf, type Comments } from "./comments.ts";
import type { OpenApiInfo, OpenApiTag } from "./open-api-document.ts";
import { externalDocsOf, openApiOptionsOf } from "./openapi-options.ts";
import { maxOperationsOf } from "./paths.ts";

/**
 * The names in operation ids. An id depends only on the names of its own RPC, so that new RPCs rename no operation.
 *
 * - `"service"`: the package's version, the service and the RPC, such as `v1_OrderService_deleteOrder`
 * - `"rpc"`: the RPC, such as `deleteOrder`
 * - `"full"`: the package, the service and the RPC, such as `orders_v1_OrderService_deleteOrder`
 *
 * An `operation_id` in `openapiv2_operation` replaces the first two.
 */
export type OperationIds = "service" | "rpc" | "full";

/** The id of an RPC's first operation, by the names in it. */
const idOf: Readonly<Record<OperationIds, (method: DescMethod) => string>> = {
  service: (method) =>
    operationIdOf(method) ||
    [packageVersionOf(method.parent.file.proto.package), method.parent.name, camelCaseOf(method)]
      .filter((name) => name !== "")
      .join("_"),
  rpc: (method) => operationIdOf(method) || camelCaseOf(method),
  full: (method) => `${method.parent.typeName.replaceAll(".", "_")}_${camelCaseOf(method)}`,
};

function operationIdOf(method: DescMethod): string | undefined {
  return openApiOptionsOf(method).operationId;
}

/** Returns an RPC's name in lowerCamelCase. Its `localName` may end in `$`, which protobuf-es adds in JavaScript. */
function camelCaseOf({ name }: DescMethod): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** Returns the version at the end of a package's name, such as `v1` or `v2beta1`, or an empty string. */
function packageVersionOf(packageName: string): string {
  return /(?:^|\.)(v\d+\w*)$/.exec(packageName)?.[1] ?? "";
}

/**
 * Returns a function that returns an RPC's next operation id. An RPC's further operations get a number.
 *
 * @throws TypeError for unknown `names`
 */
export function createOperationIds(names: OperationIds = "service"): (method: DescMethod) => string {
  requireName(idOf, names, "operationIds");
  const counts = new Map<DescMethod, number>();
  return (method) => {
    const count = (counts.get(method) ?? 0) + 1;
    counts.set(method, count);
    return count === 1 ? idOf[names](method) : `${idOf[names](method)}_${count}`;
  };
}

/**
 * Returns why RPCs have equal operation ids, with the remedy, or `undefined` if their ids differ.
 *
 * @param bindings - the bindings that a document describes, from `compileInSteps` of `@protoport/gateway/rest`
 */
export function findOperationIdClash(
  bindings: readonly RestBinding[],
  names: OperationIds = "service",
): string | undefined {
  const nextId = createOperationIds(names);
  const methods = bindings.flatMap((binding) => Array.from({ length: maxOperationsOf(binding) }, () => binding.method));
  const clash = [...Map.groupBy(methods, nextId)].find(([, sharing]) => sharing.length > 1);
  if (clash === undefined) return undefined;
  const [id, sharing] = clash;
  const otherRemedy = names === "full" ? "rename one of them" : "set operation_id in openapiv2_operation of one";
  const isUnique = names !== "full" && findOperationIdClash(bindings, "full") === undefined;
  const remedy = isUnique ? "set operationIds: full" : otherRemedy;
  return `the operation id ${id} names ${sharing.map(selectorOf).join(" and ")}; ${remedy}`;
}

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
