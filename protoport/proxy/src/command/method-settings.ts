import type { DescMethod } from "@bufbuild/protobuf";
import type { MethodSettings } from "../create-proxy.ts";
import type { MethodConfigSection } from "../settings/index.ts";

/**
 * Returns a function that finds a method's settings, as in gRPC's service config. The most specific item applies: for
 * the method, then for the service, then for all services.
 */
export function toMethodSettings(
  items: readonly MethodConfigSection[],
): (method: DescMethod) => MethodSettings | undefined {
  const named = items.flatMap((item) => {
    const settings = toSettings(item);
    return item.name.map(({ service, method }): [string, MethodSettings] => [`${service}/${method}`, settings]);
  });
  const byName = new Map(named);
  return ({ parent: { typeName }, name }) =>
    byName.get(`${typeName}/${name}`) ?? byName.get(`${typeName}/`) ?? byName.get("/");
}

function toSettings({ timeout, retryPolicy }: MethodConfigSection): MethodSettings {
  return {
    timeoutMs: timeout,
    timeoutMaxMs: timeout,
    ...(retryPolicy && {
      retry: {
        maxAttempts: retryPolicy.maxAttempts,
        initialBackoffMs: retryPolicy.initialBackoff,
        maxBackoffMs: retryPolicy.maxBackoff,
        backoffMultiplier: retryPolicy.backoffMultiplier,
        retryableCodes: retryPolicy.retryableStatusCodes,
      },
    }),
  };
}
