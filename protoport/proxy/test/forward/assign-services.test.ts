import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GreenhouseService, KitchenSink } from "@protoport/testing/proxy";
import { assignServices } from "../../src/forward/assign-services.ts";

type Offer = Parameters<typeof assignServices>[0][number];
const [greenhouse, sink] = [GreenhouseService.typeName, KitchenSink.typeName];

function offerOf(name: string, isUnlimited: boolean, services: readonly DescService[] = [GreenhouseService]): Offer {
  return { name, isUnlimited, services };
}

test.each<{ name: string; offers: readonly Offer[]; local?: string; served: object; conflicts: object }>(
  // oxfmt-ignore
  [
    { name: "an unlimited upstream comes first", offers: [offerOf("a", true), offerOf("b", false)],
      served: [[], [greenhouse]], conflicts: [[`service ${greenhouse} belongs to b`], []] },
    { name: "two unlimited upstreams offer it", offers: [offerOf("a", true), offerOf("b", true)],
      served: [[greenhouse], []], conflicts: [[], [`service ${greenhouse} belongs to a`]] },
    { name: "this server has it", offers: [offerOf("a", false), offerOf("b", true)], local: greenhouse,
      served: [[], []],
      conflicts: [[`service ${greenhouse} belongs to this server`], [`service ${greenhouse} belongs to this server`]] },
    { name: "only one upstream offers it", offers: [offerOf("a", false), offerOf("b", false, [KitchenSink])],
      local: "a.B", served: [[greenhouse], [sink]], conflicts: [[], []] },
  ],
)("a service is assigned to one upstream if $name", ({ offers, local, served, conflicts }) => {
  const { services, ...assigned } = assignServices(offers, new Set(local === undefined ? [] : [local]));
  expect(services.map((each) => each.map(({ typeName }) => typeName))).toEqual(served);
  expect(assigned.conflicts).toEqual(conflicts);
});

test("a service that two limited upstreams offer is refused once", () => {
  const offers = ["a", "b", "c"].map((name) => offerOf(name, false));
  const problem = { message: `${greenhouse} is served by two upstreams` };
  expect(() => assignServices(offers, new Set())).toThrow(expect.objectContaining(problem));
});
