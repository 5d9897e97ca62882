import type { DescService } from "@bufbuild/protobuf";
import { withCode } from "@protoport/gateway/errors";

/** An upstream's services. With `isUnlimited`, the upstream itself determines them: by reflection, without patterns. */
interface ServiceOffer {
  readonly name: string;
  readonly services: readonly DescService[];
  readonly isUnlimited: boolean;
}

/**
 * Assigns each service to one upstream. This process's services take precedence, and upstreams with `isUnlimited` come
 * last.
 *
 * @param localNames - the services that the process serves itself
 * @returns the services that each upstream serves, and messages about its services that belong to another owner
 * @throws Error if two upstreams without `isUnlimited` offer the same service
 */
export function assignServices(
  offers: readonly ServiceOffer[],
  localNames: ReadonlySet<string>,
): { readonly services: readonly (readonly DescService[])[]; readonly conflicts: readonly (readonly string[])[] } {
  const owners = new Map([...localNames].map((name) => [name, "this server"]));
  const services = offers.map((): DescService[] => []);
  const conflicts = offers.map((): string[] => []);
  const byPrecedence = [...offers.entries()].toSorted(([, a], [, b]) => Number(a.isUnlimited) - Number(b.isUnlimited));
  const duplicates: string[] = [];
  for (const [at, { services: offered, isUnlimited, name }] of byPrecedence) {
    for (const service of offered) {
      const owner = owners.get(service.typeName);
      if (owner === undefined) {
        owners.set(service.typeName, name);
        services[at]?.push(service);
      } else if (isUnlimited || localNames.has(service.typeName)) {
        conflicts[at]?.push(`service ${service.typeName} belongs to ${owner}`);
      } else duplicates.push(`${service.typeName} is served by two upstreams`);
    }
  }
  if (duplicates.length > 0) throw withCode(new Error([...new Set(duplicates)].join("\n")), "ERR_DESCRIPTORS");
  return { services, conflicts };
}
