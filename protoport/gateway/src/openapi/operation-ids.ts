import type { DescMethod } from "@bufbuild/protobuf";
import { requireName } from "../http/index.ts";
import { selectorOf } from "../protocols/index.ts";
import { openApiOptionsOf } from "./openapi-options.ts";

/**
 * The names in operation ids. An id depends only on the names of its own RPC, so that new RPCs rename no operation.
 *
 * - `"service"`: the package's version, the service and the RPC, such as `v1_OrderService_deleteOrder`
 * - `"rpc"`: the RPC, such as `deleteOrder`
 * - `"full"`: the package, the service and the RPC, such as `orders_v1_OrderService_deleteOrder`
 */
export type OperationIds = "service" | "rpc" | "full";

/** The id of an RPC's first operation, by the names in it. */
const idOf: Readonly<Record<OperationIds, (method: DescMethod) => string>> = {
  service: ({ parent, localName }) =>
    [packageVersionOf(parent.file.proto.package), parent.name, localName].filter((name) => name !== "").join("_"),
  rpc: ({ localName }) => localName,
  full: ({ parent, localName }) => `${parent.typeName.replaceAll(".", "_")}_${localName}`,
};

/** Returns the version at the end of a package's name, such as `v1` or `v2beta1`, or an empty string. */
function packageVersionOf(packageName: string): string {
  return /(?:^|\.)(v\d+\w*)$/.exec(packageName)?.[1] ?? "";
}

/** Returns the id in the option `openapiv2_operation`, or the id from the RPC's names. */
function idOfRpc(method: DescMethod, names: OperationIds): string {
  return openApiOptionsOf(method).operationId || idOf[names](method);
}

/**
 * Returns a function that returns an RPC's next operation id. An RPC's further operations get a number, and with `"full"`
 * also those of other RPCs with the same id.
 *
 * @throws TypeError for unknown `names`
 */
export function createOperationIds(names: OperationIds = "service"): (method: DescMethod) => string {
  requireName(idOf, names, "operationIds");
  const taken = new Set<string>();
  return (method) => {
    const first = idOfRpc(method, names);
    let id = first;
    for (let count = 2; taken.has(id); count++) id = `${first}_${count}`;
    taken.add(id);
    return id;
  };
}

/** Returns why RPCs with operations have equal ids, with the remedy, or `undefined` if their ids differ. */
export function findOperationIdClash(
  methods: Iterable<DescMethod>,
  names: OperationIds = "service",
): string | undefined {
  if (names === "full") return undefined;
  const byId = Map.groupBy(new Set(methods), (method) => idOfRpc(method, names));
  const [clash] = [...byId].filter(([, sharing]) => sharing.length > 1);
  if (clash === undefined) return undefined;
  const [id, sharing] = clash;
  return `the operation id ${id} names ${sharing.map(selectorOf).join(" and ")}; set operationIds: full`;
}
