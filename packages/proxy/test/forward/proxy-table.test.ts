import { expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { compileProxy } from "../../src/compile-proxy.ts";
import { createProxy } from "../../src/create-proxy.ts";
import { ProxiedUpstream, ProxyTable } from "../../src/forward/index.ts";
import { ServiceOwners } from "../../src/upstreams/index.ts";

test("a table that is closed during a reload keeps its routes", async () => {
  let set = descriptorSetOf(LibraryService.file);
  const options = { upstream: "http://127.0.0.1:1", descriptors: { read: () => Promise.resolve(set) } };
  const owners = new ServiceOwners([options]);
  const upstream = new ProxiedUpstream(options, { observe: undefined }, 0, owners);
  onTestFinished(() => upstream.close());
  const upstreams = [upstream];
  const local = { definitions: [], registry: undefined };
  const compiler = { upstreams, owners, localMethods: [], local, options: {}, report: () => undefined };
  let onCompiled: (() => void) | undefined;
  const compile: ConstructorParameters<typeof ProxyTable>[1] = function* (descriptors) {
    const compiled = yield* compileProxy(compiler, descriptors);
    onCompiled?.();
    return compiled;
  };
  const table = new ProxyTable(upstreams, compile, compiler.report, {});
  await table.load();
  const { inUse } = table;
  set = descriptorSetOf(GreenhouseService.file);
  onCompiled = () => table.close();
  expect(await table.reload()).toMatchObject({ isChanged: false, problems: [expect.stringContaining("aborted")] });
  expect(table.inUse).toBe(inUse);
});

test("an upstream's valid descriptors are used despite another upstream's conflict", async () => {
  let files = [[LibraryService.file], [KitchenSink.file]];
  const upstreams = files.map((_, at) => ({
    upstream: `http://127.0.0.1:${at + 1}`,
    descriptors: { read: async () => descriptorSetOf(...(files[at] ?? [])) },
  }));
  const proxy = await createProxy({ upstreams });
  onTestFinished(() => proxy.close());
  files = [[LibraryService.file, GreenhouseService.file], [LibraryService.file]];
  const conflict = `${LibraryService.typeName} is served by two upstreams`;
  expect((await proxy.reload()).problems).toEqual([conflict]);
  const served = proxy.descriptorReloads.map(({ services, problem }) => ({ services: services.toSorted(), problem }));
  expect(served).toEqual([
    { services: [GreenhouseService.typeName, LibraryService.typeName], problem: undefined },
    { services: [KitchenSink.typeName], problem: conflict },
  ]);
});

test("createProxy rejects an unknown RPC in rest.omit despite a local service", async () => {
  const proxy = createProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(KitchenSink.file) }],
    routes: (router) => router.service(GreenhouseService, {}),
    rest: { omit: ["a.B.C"] },
  });
  await expect(proxy).rejects.toThrow('omit: selector "a.B.C" does not match an RPC');
});
