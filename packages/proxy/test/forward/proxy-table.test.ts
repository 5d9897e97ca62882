import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { compileProxy } from "../../src/compile-proxy.ts";
import { ProxiedUpstream, ProxyTable } from "../../src/forward/index.ts";
import { ServiceOwners } from "../../src/upstreams/index.ts";

test("a table that is closed during a reload keeps its routes", async () => {
  let set = descriptorSetOf(LibraryService.file);
  const options = { upstream: "http://127.0.0.1:1", descriptors: { read: () => Promise.resolve(set) } };
  const owners = new ServiceOwners([options]);
  const upstreams = [new ProxiedUpstream(options, { observe: undefined }, 0, owners)];
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
  await upstreams[0]?.close();
});
