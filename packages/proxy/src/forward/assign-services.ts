import type { DescService } from "@bufbuild/protobuf";
import { withCode } from "@plantstore/http";
import type { ServiceDescriptors } from "./descriptors.ts";

/** What {@link assignServices} needs of an upstream. */
interface ServiceOffer {
  readonly descriptors: ServiceDescriptors;
  /**
   * Whether the upstream itself decides what it offers, because it uses reflection and no pattern selects its services.
   */
  readonly isUnlimited: boolean;
  /** The name for messages. */
  readonly name: string;
}

/** The services that each upstream serves, and those that it offers although they belong to another. */
interface AssignedServices {
  readonly services: readonly (readonly DescService[])[];
  readonly conflicts: readonly (readonly string[])[];
}

/**
 * Assigns services that several upstreams offer, if no pattern decides. This process's services take precedence, and
 * services from an upstream that is not limited by patterns come last.
 *
 * @param localNames - the services that the process serves itself
 * @throws Error if two upstreams whose services the operator has selected offer the same service
 */
export function assignServices(offers: readonly ServiceOffer[], localNames: ReadonlySet<string>): AssignedServices {
  const owners = new Map([...localNames].map((name) => [name, "this server"]));
  const services = offers.map((): DescService[] => []);
  const conflicts = offers.map((): string[] => []);
  const inOrder = [...offers.entries()].toSorted(([, a], [, b]) => Number(a.isUnlimited) - Number(b.isUnlimited));
  const duplicates: string[] = [];
  for (const [at, { descriptors, isUnlimited, name }] of inOrder) {
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
