import { createRegistry, type DescMethod, type Registry } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { hideInFiles, type PartlyVisible, type VisibilityOptions } from "@protoport/gateway/descriptors";

/** The types that come from this process, not from upstreams' descriptors. */
export interface LocalTypes {
  /** The types in this process's services and in {@link registry}. Empty if nothing is hidden. */
  readonly definitions: readonly PartlyVisible[];
  /** The visible types from the registry in `jsonOptions`, or `undefined` without a registry. */
  readonly registry: Registry | undefined;
}

/**
 * Returns the types that come from this process, not from upstreams' descriptors.
 *
 * @throws Error if `visibility` hides an enum's first value, or two files with the same name differ
 */
export function localTypesOf(
  { jsonOptions, visibility }: Pick<ConnectRouterOptions, "jsonOptions"> & { readonly visibility?: VisibilityOptions },
  localMethods: readonly DescMethod[],
): LocalTypes {
  const registry = jsonOptions?.registry;
  if (visibility === undefined) return { definitions: [], registry };
  const definitions = [
    hideInFiles(
      localMethods.map(({ parent }) => parent),
      visibility,
    ),
  ];
  if (registry === undefined) return { definitions, registry };
  const visible = hideInFiles(registry, visibility);
  const types = [...registry].flatMap(({ typeName }) => visible.types.get(typeName) ?? []);
  return { definitions: [...definitions, visible], registry: createRegistry(...types) };
}
