import type { DescMethod } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, OrderService, startGreenhouse } from "@protoport/testing/proxy";
import { createBearerAuth } from "../../../../auth/src/index.ts";
import { collectGarbage } from "../../../../testing/src/http/retained-bytes.ts";
import type { MethodSettings, ProxyGateway, ProxyOptions } from "../../../src/create-proxy.ts";
import { createProxy, createUpstream } from "../../../src/create-proxy.ts";

/** Resolves once none of the objects is in memory. A new WeakRef keeps its target until the turn ends. */
async function expectReleased(objects: readonly WeakRef<object>[]): Promise<void> {
  const left = (): number => {
    collectGarbage();
    return objects.filter((each) => each.deref() !== undefined).length;
  };
  await expect.poll(left).toBe(0);
}

/** Calls an RPC, and returns a reference to the descriptor of a served service, which the generation in use holds. */
async function callAndReference(proxy: ProxyGateway): Promise<WeakRef<object>> {
  await (await proxy.fetch(new Request("http://proxy/sensors/1/reading"))).text();
  await (await proxy.fetch(new Request("http://proxy/greenhouse.v1.GreenhouseService/Unknown"))).text();
  const [service] = proxy.services;
  expect(service).toBeDefined();
  return new WeakRef(service ?? {});
}

test.each([
  { name: "given by address", isShared: false },
  { name: "given by createUpstream", isShared: true },
])("reconfigure with upstreams $name releases the previous descriptors and routes", async ({ isShared }) => {
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) });
  const address = `http://127.0.0.1:${greenhouse.address.port}`;
  const shared = createUpstream({ addresses: address });
  const options = (): ProxyOptions => ({
    upstreams: [{ upstream: isShared ? shared : address, descriptors: descriptorSetOf(GreenhouseService.file) }],
    onReload: () => undefined,
  });
  const proxy = await createProxy(options());
  const replaced: WeakRef<object>[] = [];
  for (let turn = 0; turn < 3; turn++) {
    replaced.push(await callAndReference(proxy));
    await proxy.reconfigure(options());
  }
  await expectReleased(replaced);
  expect((await callAndReference(proxy)).deref()).toBeDefined();
  await proxy.close();
  await shared.close();
});

const { interceptor } = createBearerAuth({ verify: () => ({ kind: "unknown", reason: "" }) }, { realm: "greenhouse" });

function ownRetries(method: DescMethod): MethodSettings {
  const delays = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
  return { retry: { maxAttempts: 2, retryableCodes: [14], ...delays, methods: (other) => other === method } };
}

test.each([
  { name: "each reload" },
  { name: "each reload after reconfigure", isReconfigured: true },
  { name: "each reload with a retry policy per method", methodSettings: ownRetries },
  { name: "each reload with an interceptor of createBearerAuth", interceptors: [interceptor] },
])("$name releases the previous descriptors and routes", async (given) => {
  const { isReconfigured = false, interceptors = [], methodSettings = () => undefined } = given;
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) });
  const [some, more] = [[GreenhouseService.file], [GreenhouseService.file, OrderService.file]];
  let current = descriptorSetOf(...some);
  const upstream = `http://127.0.0.1:${greenhouse.address.port}`;
  const descriptors = { read: () => Promise.resolve(current) };
  const options: ProxyOptions = { upstreams: [{ upstream, descriptors, methodSettings }], interceptors };
  const proxy = await createProxy(options);
  if (isReconfigured) await proxy.reconfigure(options);
  const replaced: WeakRef<object>[] = [];
  for (const files of [more, some, more]) {
    replaced.push(await callAndReference(proxy));
    current = descriptorSetOf(...files);
    expect(await proxy.reload()).toMatchObject({ isChanged: true });
  }
  await expectReleased(replaced);
  await proxy.close();
});
