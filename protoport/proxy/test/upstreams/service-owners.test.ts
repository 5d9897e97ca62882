import { expect, test } from "vitest";
import { createProxy, type ProxiedUpstreamOptions } from "../../src/create-proxy.ts";
import { ServiceOwners } from "../../src/upstreams/service-owners.ts";
import { descriptorSetOf, GreenhouseService, KitchenSink } from "@protoport/testing/proxy";
import type { DescService } from "@bufbuild/protobuf";
import { assignServices } from "../../src/forward/assign-services.ts";

const [reflected, file] = [["a.*"], ["b.*"]].map((services) => ({ descriptors: "reflection", services }));

test.each<{ patterns: readonly (readonly string[] | undefined)[]; name: string; owner: number | undefined }>([
  { patterns: [["a.*"], ["b.*"]], name: "b.v1.B", owner: 1 },
  { patterns: [["*"], ["b.*"]], name: "b.v1.B", owner: 1 },
  { patterns: [["b.v1.*"], ["b.*"]], name: "b.v1.B", owner: 0 },
  { patterns: [["b.v1.*"], ["b.v1.B"]], name: "b.v1.B", owner: 1 },
  { patterns: [["b.v1.B*"], ["b.v1.B"]], name: "b.v1.B", owner: 1 },
  { patterns: [["b.v1.B*"], ["b.v1.B"]], name: "b.v1.Bee", owner: 0 },
  { patterns: [["a.*"], ["b.*"]], name: "c.v1.C", owner: undefined },
  { patterns: [["a.*"], undefined], name: "c.v1.C", owner: undefined },
])("for the service $name, the patterns $patterns select upstream $owner as owner", ({ patterns, name, owner }) => {
  const owners = new ServiceOwners(patterns.map((services) => ({ services, descriptors: "reflection" })));
  expect(owners.ownerOf(name)).toBe(owner);
  const isUnlimited = patterns.map((services) => services === undefined);
  expect(patterns.map((_, at) => owners.ownerOfOffered(at, name))).toEqual(
    patterns.map((_, at) => owner ?? (isUnlimited[at] === true ? at : undefined)),
  );
});

test.each<{ patterns: readonly string[]; segment: string; owner: number | undefined }>([
  { patterns: ["*", "Greeter"], segment: "Greeter", owner: 1 },
  { patterns: ["*", "Greet*"], segment: "Greeter", owner: 1 },
  { patterns: ["*", "b.*"], segment: "Greeter", owner: undefined },
  { patterns: ["*", "b.*"], segment: "v1", owner: undefined },
])("for the path segment $segment, the patterns $patterns select upstream $owner as owner", (row) => {
  const upstreams = row.patterns.map((services) => ({ services: [services], descriptors: "reflection" }));
  expect(new ServiceOwners(upstreams).otherOwnerOfPath(2, row.segment)).toBe(row.owner);
});

test.each(["grpc.reflection.v1.ServerReflection", "grpc.health.v1.Health", "grpc.channelz.v1.Channelz"])(
  "%s is proxied only if a pattern names the service",
  (name) => {
    expect(new ServiceOwners([{ descriptors: "reflection" }]).ownerOfOffered(0, name)).toBeUndefined();
    expect(new ServiceOwners([{ descriptors: "reflection", services: [name] }]).ownerOfOffered(0, name)).toBe(0);
    const others = [reflected, file].flatMap((each) => each ?? []);
    const owners = new ServiceOwners([...others, { descriptors: "reflection", services: [name] }]);
    expect(owners.ownerOfOffered(0, name)).toBeUndefined();
  },
);

const upstream = "http://127.0.0.1:1";
const set = descriptorSetOf(GreenhouseService.file);

test.each<[name: string, upstreams: readonly ProxiedUpstreamOptions[], problem: string]>(
  // oxfmt-ignore
  [
    ["reflection of two upstreams without services for each",
      [{ upstream, descriptors: "reflection", services: ["a.*"] }, { upstream, descriptors: "reflection",
        services: [] }],
      'upstreams[1].services is required because upstreams[0] uses reflection, too; add services: ["package.*"]'],
    ["the same service pattern for two upstreams",
      [{ upstream, descriptors: "reflection", services: ["b.*", "a.*"] }, { upstream, descriptors: set,
        services: ["a.*"] }], 'upstreams[1].services must not contain "a.*", which is a pattern of upstreams[0]'],
  ],
)("createProxy and reconfigure reject %s in the options", async (_name, upstreams, problem) => {
  const error = { name: "TypeError", message: problem, code: "ERR_OPTIONS" };
  await expect(createProxy({ upstreams })).rejects.toMatchObject(error);
  const proxy = await createProxy({ upstreams: [{ upstream, descriptors: set }] });
  await expect(proxy.reconfigure({ upstreams })).rejects.toMatchObject(error);
  expect(proxy.services).toHaveLength(1);
  await proxy.close();
});

test("`services` is optional if only one upstream uses reflection", async () => {
  const upstreams: readonly ProxiedUpstreamOptions[] = [
    { upstream, descriptors: "reflection" },
    { upstream, descriptors: set },
  ];
  await using stack = new AsyncDisposableStack();
  const proxy = await createProxy({ upstreams });
  stack.defer(() => proxy.close());
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual([GreenhouseService.typeName]);
});

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
