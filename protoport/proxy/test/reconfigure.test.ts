import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { Code, ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService, WaterBedRequestSchema } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "../../gateway/src/reflection/index.ts";
import { createProxy, type ProxyGateway, type ProxyOptions } from "../src/create-proxy.ts";
// oxfmt-ignore
import { descriptorSetOf, respondWatered, restrictedGreenhouse, serviceWithRoutes, startReflectedUpstream,
  startScriptedServer } from "@protoport/testing/proxy";
import { createTestGateway, exchangeFetch, startOnLoopback } from "@protoport/testing";

const descriptors = descriptorSetOf(GreenhouseService.file);

async function openProxy(options: ProxyOptions): Promise<ProxyGateway> {
  const proxy = await createProxy(options);
  onTestFinished(() => proxy.close());
  return proxy;
}

test.each([
  { name: "an address", toUpstream: (address: string) => address },
  { name: "options", toUpstream: (addresses: string) => ({ addresses }) },
])("reconfigure closes the connections to a replaced upstream from $name", async ({ toUpstream }) => {
  await using old = await startScriptedServer(respondWatered);
  const proxy = await openProxy({ upstreams: [{ upstream: toUpstream(old.baseUrl), descriptors }] });
  const header = [["content-type", "application/json"]] as const;
  const request = { httpMethod: "POST", path: "/beds/7:water", header, body: Buffer.from("{}") };
  expect([(await exchangeFetch(proxy.fetch, request)).httpStatus, old.open]).toEqual([200, 1]);
  await proxy.reconfigure({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  await expect.poll(() => old.open).toBe(0);
});

test("reconfigure closes the new connections if accept refuses the options", async () => {
  const reflected = createTestGateway({
    routes: (router) => {
      router.service(GreenhouseService, {});
      router.service(ServerReflection, createReflectionService([GreenhouseService]));
    },
  });
  const { port } = await reflected.listen({ host: "127.0.0.1" });
  const proxy = await createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  const next = { upstreams: [{ upstream: `http://127.0.0.1:${port}`, descriptors: "reflection" as const }] };
  const connections: number[] = [];
  const accept = (): void => {
    connections.push(reflected.load.connections.http2);
    throw new RangeError("refused");
  };
  await expect(proxy.reconfigure(next, accept)).rejects.toThrow("refused");
  await expect.poll(() => reflected.load.connections.http2).toBe(0);
  expect(connections).toEqual([1]);
  await proxy.close();
  await reflected.close();
});

test("a reload after reconfigure applies to routes and to error details", async () => {
  let current = descriptors;
  const upstreams = [{ upstream: "http://127.0.0.1:1", descriptors: { read: () => Promise.resolve(current) } }];
  const detail = { desc: WaterBedRequestSchema, value: { bed: 7n, note: "secret" } };
  const options: ProxyOptions = {
    upstreams,
    visibility: { allow: [] },
    interceptors: [
      () => () => {
        throw new ConnectError("the pump is broken", Code.Aborted, undefined, [detail]);
      },
    ],
  };
  const proxy = await openProxy(options);
  const respondTo = async (rpc: string): Promise<string> => {
    const path = `/${GreenhouseService.typeName}/${rpc}`;
    const header = [["content-type", "application/json"]] as const;
    return (
      await exchangeFetch(proxy.fetch, { httpMethod: "POST", path, header, body: Buffer.from("{}") })
    ).body.toString();
  };
  await proxy.reconfigure(options);
  expect(await respondTo("GetReading")).toContain("the pump is broken");
  expect(await respondTo("WaterBed")).toContain('"note":"secret"');
  current = descriptorSetOf(restrictedGreenhouse());
  await proxy.reload();
  expect(await respondTo("GetReading")).not.toContain("the pump is broken");
  expect(await respondTo("WaterBed")).toContain("the pump is broken");
  expect(await respondTo("WaterBed")).not.toContain("secret");
});

test.each([
  { name: "both are unreachable", offered: ["a.A", "b.B"], isUp: false },
  { name: "one offers no services", offered: ["a.A"], isUp: true },
])("reconfigure keeps two upstreams at one address although $name", async ({ offered, isUp }) => {
  await using reflected = await startReflectedUpstream(...offered.map((name) => serviceWithRoutes(name, { Get: [] })));
  const upstream = { upstream: reflected.address, descriptors: "reflection" as const };
  const upstreams = ["a.*", "b.*"].map((pattern) => ({ ...upstream, services: [pattern] }));
  const proxy = await openProxy({ upstreams });
  if (!isUp) await reflected.stop();
  await proxy.reconfigure({ upstreams });
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual(offered);
});

test("reconfigure keeps the descriptors of an unreachable upstream whose services change", async () => {
  await using reflected = await startReflectedUpstream(serviceWithRoutes("a.A", { Get: [] }));
  const upstream = { upstream: reflected.address, descriptors: "reflection" as const };
  const proxy = await openProxy({ upstreams: [upstream] });
  await reflected.stop();
  const other = { upstream: "http://127.0.0.1:1", descriptors };
  const { lastSuccessMs } = proxy.descriptorReloads[0] ?? {};
  await proxy.reconfigure({ upstreams: [{ ...upstream, services: ["a.*"] }, other] });
  expect(proxy.descriptorReloads).toMatchObject([
    { problem: expect.stringContaining("cannot connect"), lastSuccessMs, successes: 1, failures: 1 },
    { problem: undefined, successes: 1, failures: 0 },
  ]);
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual(["a.A", GreenhouseService.typeName]);
});

test("an unreachable upstream with more services keeps its descriptors after reconfigure", async () => {
  await using reflected = await startReflectedUpstream(
    ...["a.A", "b.B"].map((name) => serviceWithRoutes(name, { Get: [] })),
  );
  const upstream = { upstream: reflected.address, descriptors: "reflection" as const };
  const upstreamOf = (...services: readonly string[]) => ({ ...upstream, services });
  const proxy = await openProxy({ upstreams: [upstreamOf("a.*"), upstreamOf("b.*")] });
  await reflected.stop();
  await proxy.reconfigure({ upstreams: [upstreamOf("a.*"), upstreamOf("b.*", "c.*")] });
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual(["a.A", "b.B"]);
});

test.each([{ name: "the same services" }, { name: "other services", services: ["a.*"] }])(
  "reconfigure does not keep descriptors from another Unix socket for $name",
  async ({ services = [] }) => {
    const set = descriptorSetOf(serviceWithRoutes("a.A", { Get: [] }).file);
    const proxy = await createProxy({ upstreams: [{ upstream: "unix:/none/a", descriptors: set, services: [] }] });
    onTestFinished(() => proxy.close());
    const source = { read: () => Promise.reject(new ConnectError("gone", Code.Unavailable)) };
    const unreachable = { upstream: "unix:/none/b", descriptors: source, services };
    await proxy.reconfigure({ upstreams: [unreachable, { upstream: "unix:/none/c", descriptors }] });
    expect(proxy.services.map(({ typeName }) => typeName)).toEqual([GreenhouseService.typeName]);
  },
);

test("conflicts name the Unix socket of the upstream that serves the service", async () => {
  const set = descriptorSetOf(GreenhouseService.file, serviceWithRoutes("a.A", { Get: [] }).file);
  const upstreams = [
    { upstream: "unix:/none/greenhouse.sock", descriptors: set, services: ["greenhouse.*"] },
    { upstream: "unix:/none/others.sock", descriptors: set },
  ];
  const proxy = await openProxy({ upstreams });
  const belongs = `service ${GreenhouseService.typeName} belongs to unix:/none/greenhouse.sock`;
  expect(proxy.descriptorReloads.map(({ conflicts }) => conflicts)).toEqual([[], [belongs]]);
});

test("a call in flight keeps its hooks and visibility rules after reconfigure", async () => {
  const started = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  const detail = { desc: WaterBedRequestSchema, value: { bed: 7n, note: "secret" } };
  const restricted = descriptorSetOf(restrictedGreenhouse());
  const logged: unknown[] = [];
  const optionsOf = (name: string, allow: readonly string[]): ProxyOptions => ({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: restricted }],
    visibility: { allow },
    requestPathPrefix: `/${name}`,
    onResponse: ({ httpRoute, durationMs }) => logged.push([name, httpRoute, durationMs < 10_000]),
    interceptors: [
      () => () => {
        started.resolve();
        return failed.promise;
      },
    ],
  });
  const proxy = await openProxy(optionsOf("old", []));
  const header = [["content-type", "application/json"]] as const;
  const request = { httpMethod: "POST", path: "/old/beds/7:water", header, body: Buffer.from("{}") };
  const responded = exchangeFetch(proxy.fetch, request);
  await started.promise;
  await proxy.reconfigure(optionsOf("new", ["INTERNAL"]));
  failed.reject(new ConnectError("the pump is broken", Code.Aborted, undefined, [detail]));
  const body = (await responded).body.toString();
  expect(body).toContain("the pump is broken");
  expect(body).not.toContain("secret");
  expect(logged).toEqual([["old", "/old/beds/{bed}:water", true]]);
});

test("reconfigure replaces the fallback and the context values of the handler", async () => {
  const key = createContextKey("");
  const optionsOf = (name: string): ProxyOptions => ({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }],
    fallback: (_, response) => void response.end(name),
    contextValues: () => createContextValues().set(key, name),
    interceptors: [
      () =>
        ({ contextValues }) => {
          throw new ConnectError(`called with ${contextValues.get(key)}`, Code.Aborted);
        },
    ],
  });
  const proxy = await createProxy(optionsOf("old"));
  await using server = await startOnLoopback(createServer(proxy.handler));
  await proxy.reconfigure(optionsOf("new"));
  expect(await (await fetch(`${server.baseUrl}/other`)).text()).toBe("new");
  const response = await fetch(`${server.baseUrl}/beds/7:water`, { method: "POST" });
  expect(await response.json()).toMatchObject({ message: "called with new" });
  await proxy.close();
});

/** Returns the sockets that this process opens until the end of the test. */
function recordClientSockets(): readonly unknown[] {
  const sockets: unknown[] = [];
  const record = (message: unknown): void => void sockets.push(Reflect.get(Object(message), "socket"));
  subscribe("net.client.socket", record);
  onTestFinished(() => void unsubscribe("net.client.socket", record));
  return sockets;
}

test("drain closes the upstreams of a reconfigure whose reflection does not respond", async () => {
  const connected = Promise.withResolvers<void>();
  await using silent = await startOnLoopback(createTcpServer(() => connected.resolve()));
  const proxy = await createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  const sockets = recordClientSockets();
  const reconfigured = proxy.reconfigure({ upstreams: [{ upstream: silent.baseUrl, descriptors: "reflection" }] });
  await connected.promise;
  const rejected = expect(reconfigured).rejects.toThrow("the proxy is closed");
  await proxy.drain(0);
  expect(sockets).toMatchObject([{ closed: true }]);
  await rejected;
});

test("reconfigure applies later options although an earlier accept never resolves", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const upstreams = ["a.A", "b.B"].map((name, at) => ({
    upstream: `http://127.0.0.1:${at + 1}`,
    descriptors: descriptorSetOf(serviceWithRoutes(name, { Get: [] }).file),
  }));
  const [first, second] = upstreams.map((upstream): ProxyOptions => ({ upstreams: [upstream] }));
  if (first === undefined || second === undefined) return expect.unreachable("two options");
  const proxy = await openProxy(first);
  const names = (): readonly string[] => proxy.services.map(({ typeName }) => typeName);
  for (const [next, wanted] of [
    [second, "b.B"],
    [first, "a.A"],
  ] as const) {
    const called = Promise.withResolvers<void>();
    const blocked = proxy.reconfigure({ upstreams }, () => {
      called.resolve();
      return new Promise(() => undefined);
    });
    const applied = proxy.reconfigure(next);
    await called.promise;
    vi.advanceTimersByTime(29_999);
    const before = names();
    vi.advanceTimersByTime(1);
    await expect(blocked).rejects.toThrow("`accept` of reconfigure must resolve within 30000 ms");
    await applied;
    expect([before, names()]).toEqual([[wanted === "b.B" ? "a.A" : "b.B"], [wanted]]);
    expect(vi.getTimerCount()).toBe(0);
  }
});

test("drain closes the upstreams of a reconfigure whose accept does not resolve", async () => {
  await using reflected = await startReflectedUpstream(serviceWithRoutes("a.A", { Get: [] }));
  const proxy = await createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  const sockets = recordClientSockets();
  const called = Promise.withResolvers<void>();
  const next = { upstreams: [{ upstream: reflected.address, descriptors: "reflection" as const }] };
  const reconfigured = proxy.reconfigure(next, () => {
    called.resolve();
    return new Promise(() => undefined);
  });
  await called.promise;
  await proxy.drain(0);
  expect(sockets).toMatchObject([{ closed: true }]);
  await expect(reconfigured).rejects.toThrow("the proxy is closed");
});

test("drain after reconfigure serves a call that has not reached its upstream", async () => {
  await using upstream = await startScriptedServer(respondWatered);
  const [called, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const options: ProxyOptions = {
    upstreams: [{ upstream: upstream.baseUrl, descriptors }],
    interceptors: [
      (next) => async (request) => {
        called.resolve();
        await answer.promise;
        return await next(request);
      },
    ],
  };
  const proxy = await createProxy(options);
  await proxy.reconfigure(options);
  const { port } = await proxy.listen({ host: "127.0.0.1" });
  const responded = fetch(`http://127.0.0.1:${port}/beds/7:water`, { method: "POST" });
  await called.promise;
  const drained = proxy.drain(10_000);
  answer.resolve();
  expect((await responded).status).toBe(200);
  await drained;
});

test.each([
  { name: "clientAddress", ignored: { clientAddress: () => undefined } },
  { name: "fallback", ignored: { fallback: () => undefined } },
  { name: "contextValues", ignored: { contextValues: () => createContextValues() } },
])("reconfigure refuses $name after listen was called", async ({ name, ignored }) => {
  const options: ProxyOptions = { upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] };
  const proxy = await openProxy(options);
  const problem = {
    code: "ERR_OPTIONS",
    message: expect.stringContaining(`listen() would ignore the option "${name}"`),
  };
  const refused = expect(proxy.reconfigure({ ...options, ...ignored })).rejects.toMatchObject(problem);
  await proxy.listen({ host: "127.0.0.1" });
  await refused;
  await expect(proxy.reconfigure({ ...options, ...ignored })).rejects.toMatchObject(problem);
});

const trust = (addresses?: readonly string[]) => addresses && { trustedProxies: { addresses } };

test.each([
  { trusted: ["127.0.0.1"], later: [[], ["192.0.2.1"], undefined], seen: "192.0.2.7" },
  { trusted: undefined, later: [["127.0.0.1"], ["127.0.0.0/8"]], seen: "127.0.0.1" },
])("with $trusted as trusted proxies at the start, reconfigure does not change them", async (row) => {
  const addresses: string[] = [];
  const options: ProxyOptions = {
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }],
    admit: ({ peer }) => void addresses.push(peer.address),
  };
  const proxy = await openProxy({ ...options, ...trust(row.trusted) });
  const { port } = await proxy.listen({ host: "127.0.0.1" });
  const call = async (): Promise<unknown> =>
    await fetch(`http://127.0.0.1:${port}/unknown`, { headers: { "x-forwarded-for": "192.0.2.7" } });
  await call();
  for (const trusted of row.later) {
    await proxy.reconfigure({ ...options, ...trust(trusted) });
    await call();
  }
  expect(addresses).toEqual([row.seen, ...row.later.map(() => row.seen)]);
});
