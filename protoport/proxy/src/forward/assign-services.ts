import type { DescService } from "@bufbuild/protobuf";
import { withCode } from "@protoport/gateway/errors";
import type { ServiceDescriptors } from "./descriptors.ts";

/** The data about an upstream that {@link assignServices} needs. */
interface ServiceOffer {
  readonly descriptors: ServiceDescriptors;
  /** Whether the upstream itself determines its services: by reflection and without service patterns. */
  readonly isUnlimited: boolean;
  /** The upstream's name in messages. */
  readonly name: string;
}

/** The services that each upstream serves, and its services that belong to another upstream. */
interface AssignedServices {
  readonly services: readonly (readonly DescService[])[];
  readonly conflicts: readonly (readonly string[])[];
}

/**
 * Assigns each service to one upstream. This process's services take precedence, and upstreams with `isUnlimited` come
 * last.
 *
 * @param localNames - the services that the process serves itself
 * @throws Error if two upstreams without `isUnlimited` offer the same service
 */
export function assignServices(offers: readonly ServiceOffer[], localNames: ReadonlySet<string>): AssignedServices {
  const owners = new Map([...localNames].map((name) => [name, "this server"]));
  const services = offers.map((): DescService[] => []);
  const conflicts = offers.map((): string[] => []);
  const byPrecedence = [...offers.entries()].toSorted(([, a], [, b]) => Number(a.isUnlimited) - Number(b.isUnlimited));
  const duplicates: string[] = [];
  for (const [at, { descriptors, isUnlimited, name }] of byPrecedence) {
    for (const service of descriptors.services) {
      const { typeName } = service;
      const owner = owners.get(typeName);
      if (owner === undefined) {
        owners.set(typeName, name);
        services[at]?.push(service);
      } else if (isUnlimited || localNames.has(typeName)) {
        conflicts[at]?.push(`service ${typeName} belongs to ${owner}`);
      } else duplicates.push(`${typeName} is served by two upstreams`);
    }
  }
  if (duplicates.length > 0) throw withCode(new Error([...new Set(duplicates)].join("\n")), "ERR_DESCRIPTORS");
  return { services, conflicts };
}
