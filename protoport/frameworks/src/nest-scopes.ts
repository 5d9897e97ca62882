import type { InstanceWrapper, NestContainer } from "./nest-enhancers.ts";

/** Nest's `Scope.REQUEST`. */
const requestScope = 2;

/** Returns the error for providers that Nest creates for each request, with the dependencies that cause this. */
export function describeScoped(types: readonly object[], container: NestContainer): string {
  const wrappers = [...container.getModules().values()].flatMap(({ providers }) =>
    types.flatMap((type) => providers.get(type) ?? []),
  );
  const scoped = wrappers.filter((each) => !each.isDependencyTreeStatic());
  const chains = [...new Set(scoped.map((each) => chainOf(each, new Set()).join(" → ")))];
  return (
    `Nest creates providers of ConnectModule for each request: ${chains.join(", ")}. Remove the scope REQUEST, and ` +
    "read the request from the option contextValues"
  );
}

/** Returns the names from a provider to the dependency that is request-scoped. */
function chainOf(wrapper: InstanceWrapper, seen: Set<InstanceWrapper>): readonly string[] {
  const name = String(wrapper.name);
  seen.add(wrapper);
  if (wrapper.scope === requestScope) return [name];
  const properties = (wrapper.getPropertiesMetadata() ?? []).map((property) => property.wrapper);
  const dependencies = [wrapper.getCtorMetadata(), properties, wrapper.getEnhancersMetadata()].flatMap(
    (each) => each ?? [],
  );
  const cause = dependencies.find((each) => !seen.has(each) && !each.isDependencyTreeStatic());
  return cause === undefined ? [name] : [name, ...chainOf(cause, seen)];
}
