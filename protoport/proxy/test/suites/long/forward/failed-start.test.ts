import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { descriptorSetOf, serviceWithRoutes } from "@protoport/testing/proxy";
import type { DescriptorSource, ProxiedUpstreamOptions, ProxyOptions } from "../../../../src/create-proxy.ts";
import { createProxy } from "../../../../src/create-proxy.ts";

afterEach(() => void vi.useRealTimers());

/** Returns an upstream with this port, which no test calls, with a separate service. */
function upstreamOf(port: number, descriptors: Partial<DescriptorSource> = {}): ProxiedUpstreamOptions {
  const read = (): Promise<Uint8Array> =>
    Promise.resolve(descriptorSetOf(serviceWithRoutes(`a${port}.A`, { Get: [] }).file));
  return { upstream: `http://127.0.0.1:${port}`, descriptors: { read, ...descriptors }, services: [`a${port}.*`] };
}

const failToConnect = (): Promise<never> => Promise.reject(new ConnectError("no connection", Code.Unavailable));

test.each<[name: string, options: Partial<ProxyOptions>]>([
  ["invalid trustedProxies", { trustedProxies: { addresses: ["nonsense"] } }],
  ["an endpoint without a handler", { endpoints: [Object.assign(Object.create(null), { path: "/a" })] }],
])("a start that fails due to %s stops retries of unreachable upstreams", async (_name, options) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const upstreams = [upstreamOf(1), upstreamOf(2, { read: failToConnect })];
  await expect(createProxy({ ...options, upstreams })).rejects.toMatchObject({ code: "ERR_OPTIONS" });
  expect(vi.getTimerCount()).toBe(0);
});

test("a failed start stops the watches of earlier upstreams", async () => {
  const watching: (() => void)[] = [];
  const stopped: number[] = [];
  const watched = (port: number): ProxiedUpstreamOptions =>
    upstreamOf(port, {
      watch(changed) {
        if (port === 3) throw new Error("no watch");
        watching.push(changed);
        return () => void stopped.push(port);
      },
    });
  const upstreams = [watched(1), watched(2), watched(3)];
  const onReload = vi.fn<() => void>();
  await expect(createProxy({ upstreams, onReload })).rejects.toThrow("no watch");
  expect(stopped).toEqual([1, 2]);
  for (const changed of watching) changed();
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
  expect(onReload.mock.calls).toEqual([]);
});
