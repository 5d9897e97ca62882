import { isDeepStrictEqual } from "node:util";
import type { ProxiedUpstream } from "./proxied-upstream.ts";
import type { KnownDescriptors, ProxyTable } from "./proxy-table.ts";

/**
 * Returns a function that looks up an upstream's descriptors in a previous table.
 *
 * A separate function, because a closure in `openServing` that uses `previous` would leak. Closures in a function share
 * their variables, and routes hold other closures, so each table would keep all earlier tables in memory.
 */
export function knownDescriptorsOf(
  upstreams: readonly ProxiedUpstream[],
  previous: ProxyTable | undefined,
): (at: number) => KnownDescriptors | undefined {
  return (at) => {
    const next = upstreams[at];
    if (next === undefined) return undefined;
    const { connections } = next;
    const hasSameAddress = (old: ProxiedUpstream): boolean => old.connections.name === connections.name;
    // Several upstreams may have one address, and the descriptors of each have only its services.
    const isOwn = (old: ProxiedUpstream): boolean => hasSameServices(old, next);
    const isUnclaimed = (old: ProxiedUpstream): boolean =>
      !upstreams.some((other) => hasSameAddress(other) && hasSameServices(old, other));
    return previous?.knownOf([
      (old) => hasSameAddress(old) && isOwn(old),
      (old) => hasSameAddress(old) && isUnclaimed(old),
    ]);
  };
}

function hasSameServices(one: ProxiedUpstream, other: ProxiedUpstream): boolean {
  return isDeepStrictEqual(one.options.services, other.options.services);
}
