import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { serviceWithRoutes, startReflectedUpstream } from "../../../testing/src/gateway/reflected-upstream.ts";
import { createProxy } from "../../src/create-proxy.ts";
import { runSteps } from "../../../gateway/src/http/index.ts";
import type { ServiceDescriptors } from "../../src/forward/descriptors.ts";
import { ProxiedUpstream, typesOf } from "../../src/forward/proxied-upstream.ts";
import { ServiceOwners } from "../../src/upstreams/index.ts";

test("a change found after the watch was stopped is ignored", async () => {
  const listeners: (() => void)[] = [];
  const descriptors = {
    read: () => Promise.resolve(new Uint8Array()),
    watch: (changed: () => void) => {
      listeners.push(changed);
      return () => undefined;
    },
  };
  const options = { upstream: "http://127.0.0.1:1", descriptors };
  const upstream = new ProxiedUpstream(options, { observe: undefined }, 0, new ServiceOwners([options]));
  let changes = 0;
  const [first, second] = [1, 2].map(() => upstream.watchDescriptors(() => void (changes += 1)));
  for (const changed of listeners) changed();
  expect(changes).toBe(2);
  first?.();
  for (const changed of listeners) changed();
  expect(changes).toBe(3);
  second?.();
  for (const changed of listeners) changed();
  expect(changes).toBe(3);
  await upstream.close();
});

test("reconfigure keeps the services of an upstream that offers none, and omits no other service", async () => {
  await using upstream = await startReflectedUpstream(serviceWithRoutes("orders.v1.Orders", {}));
  const options = {
    upstreams: [{ upstream: upstream.address, descriptors: "reflection" as const, services: ["orders.v1.*"] }],
  };
  const proxy = await createProxy(options);
  upstream.offer(serviceWithRoutes("orders.v2.Orders", {}));
  await proxy.reconfigure(options);
  const { services, omitted, descriptorReloads } = proxy;
  expect([services.map(({ typeName }) => typeName), omitted]).toEqual([["orders.v1.Orders"], []]);
  expect(descriptorReloads[0]?.problem).toContain("; orders.v2.Orders is not selected");
  await proxy.close();
});

function descriptorsWith(name: string, messages: readonly string[]): ServiceDescriptors {
  const messageType = messages.map((each) => ({ name: each }));
  const types = createFileRegistry(
    create(FileDescriptorProtoSchema, { name, package: "a", messageType }),
    () => undefined,
  );
  const services: readonly DescService[] = [];
  return { services, types, omitted: new Map(), restricted: new Set(), hiddenRpcs: new Set(), labels: new Set() };
}

test("the first upstream that declares a type defines it", () => {
  const all = [
    descriptorsWith("first.proto", ["Note"]),
    descriptorsWith("second.proto", ["Note", "Page"]),
    descriptorsWith("third.proto", ["Note", "Page", "Book"]),
  ];
  const types = runSteps(typesOf(all));
  const fileOf = (name: string): string | undefined => types.getMessage(`a.${name}`)?.file.name;
  expect(["Note", "Page", "Book"].map(fileOf)).toEqual(["first", "second", "third"]);
});
