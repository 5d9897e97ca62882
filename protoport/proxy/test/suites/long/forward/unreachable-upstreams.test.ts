import { createServer, type Server } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, afterEach, vi } from "vitest";
import { descriptorSetOf, GreenhouseService, startGreenhouse, serviceWithRoutes } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../../../src/client/index.ts";
// oxfmt-ignore
import { type ProxiedUpstreamOptions, type ProxyOptions, type ReloadReport, createProxy, type DescriptorSource
} from "../../../../src/create-proxy.ts";
import { StreamService } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { startOnLoopback, within } from "@protoport/testing";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";

/** Starts a greenhouse with server reflection. @param port - a free port, or 0 */
const startReflected = (port: number) =>
  startReflectedGreenhouse({ getReading: ({ sensor }) => ({ sensor }) }, {}, { port });

async function freePort(): Promise<number> {
  const server: Server = createServer();
  await using listening = await startOnLoopback(server);
  return Number(new URL(listening.baseUrl).port);
}

const streams: ProxiedUpstreamOptions = {
  upstream: "http://127.0.0.1:1",
  descriptors: descriptorSetOf(StreamService.file),
};

async function openProxy(upstreams: readonly ProxiedUpstreamOptions[], options: Partial<ProxyOptions> = {}) {
  const reports: ReloadReport[] = [];
  const proxy = await createProxy({ upstreams, onReload: (report) => reports.push(report), ...options });
  onTestFinished(() => proxy.close());
  const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
  return { proxy, reports, baseUrl: `http://127.0.0.1:${port}` };
}

const statusOf = async (url: string, method = "GET"): Promise<number> => (await fetch(url, { method })).status;

test("an upstream that is unreachable at the start is served later", async () => {
  const port = await freePort();
  const greenhouse = { upstream: `http://127.0.0.1:${port}`, descriptors: "reflection" } as const;
  const rules = [{ selector: "streams.v1.StreamService.Count", pattern: { case: "get", value: "/counts" } }] as const;
  const { proxy, baseUrl, reports } = await openProxy([{ ...streams, rules }, greenhouse]);
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual([StreamService.typeName]);
  expect(proxy.descriptorReloads).toMatchObject([
    { problem: undefined, lastSuccessMs: expect.any(Number) },
    { problem: expect.stringContaining(`127.0.0.1:${port}: server reflection failed`), lastSuccessMs: undefined },
  ]);
  const response = await fetch(`${baseUrl}/sensors/a/reading`);
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await response.json()).toMatchObject({ message: expect.stringContaining("is not available") });
  // The method may belong to an RPC that is not known yet.
  expect(await statusOf(`${baseUrl}/counts`, "DELETE")).toBe(503);
  await using transport = createGrpcTransport({ baseUrl });
  const call = createClient(GreenhouseService, transport).getReading({ sensor: "a" });
  expect(ConnectError.from(await call.catch((error: unknown) => error))).toMatchObject({ code: Code.Unavailable });
  await using _ = await startReflected(port);
  // Happens without a call to reload().
  await expect.poll(() => proxy.services.length).toBe(2);
  expect([await statusOf(`${baseUrl}/sensors/a/reading`), await statusOf(`${baseUrl}/nothing`)]).toEqual([200, 404]);
  expect(await statusOf(`${baseUrl}/counts`, "DELETE")).toBe(405);
  expect(proxy.descriptorReloads.map(({ problem }) => problem)).toEqual([undefined, undefined]);
  expect(reports.at(-1)).toMatchObject({ removed: [], problems: [] });
});

test("an upstream whose first descriptor set is empty is reported", async () => {
  const unreachable = new ConnectError("no connection", Code.Unavailable);
  let count = 0;
  const read = (): Promise<Uint8Array> => (count++ ? Promise.resolve(new Uint8Array()) : Promise.reject(unreachable));
  const { proxy, baseUrl } = await openProxy([streams, { ...streams, descriptors: { read } }]);
  expect((await proxy.reload()).problems.join()).toContain("they have no service to proxy");
  expect(proxy.descriptorReloads[1]).toMatchObject({ problem: expect.any(String), lastSuccessMs: undefined });
  // The upstream's services are still unknown, so unknown paths get 503.
  expect(await statusOf(`${baseUrl}/sensors/a/reading`)).toBe(503);
});

test("a silent upstream delays the start briefly, and is served later", async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const { promise: never } = Promise.withResolvers<Uint8Array>();
  let count = 0;
  const slow = { upstream: "http://127.0.0.1:1", descriptors: { read: () => (count++ === 0 ? promise : never) } };
  const { proxy } = await within(openProxy([streams, slow]), "the start", 15_000);
  const problems = proxy.descriptorReloads.map(({ problem }) => problem);
  expect(problems).toEqual([undefined, expect.stringContaining("reading the descriptors timed out after 5000 ms")]);
  // The late response is used. Another read would not end.
  resolve(descriptorSetOf(GreenhouseService.file));
  await expect.poll(() => proxy.services.length).toBe(2);
});

test("an upstream that responds after a failed start causes no reload", async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const reports: ReloadReport[] = [];
  const upstreams = [
    { ...streams, descriptors: { read: () => promise } },
    { ...streams, descriptors: { read: () => Promise.reject(new Error("no file")) } },
  ];
  await expect(createProxy({ upstreams, onReload: (report) => reports.push(report) })).rejects.toThrow("no file");
  resolve(descriptorSetOf(GreenhouseService.file));
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
  expect(reports).toEqual([]);
});

test("createProxy with several unreachable upstreams fails", async () => {
  const upstreams = ["1", "2"].map((port): ProxiedUpstreamOptions => ({
    upstream: `http://127.0.0.1:${port}`,
    descriptors: "reflection",
    services: [`service${port}.*`],
  }));
  await expect(createProxy({ upstreams })).rejects.toThrow("127.0.0.1:1: server reflection failed");
});

interface UnknownPathCase {
  readonly path: string;
  /** The REST path for an RPC that is known from the start. */
  readonly known?: string;
  readonly requestPathPrefix?: string;
  readonly method?: string;
  /** The HTTP status before and after the reload. */
  readonly statuses: readonly [number, number];
  readonly reads: number;
}

describe("a request for an unknown path", () => {
  test.each<UnknownPathCase>([
    { path: "/greenhouse.v1.GreenhouseService/WaterBed", reads: 2, statuses: [404, 200] },
    { path: "/nothing", reads: 1, statuses: [404, 404] },
    { path: "/api/beds/7:water", known: "/beds/a/{sensor}", requestPathPrefix: "/api", reads: 2, statuses: [404, 200] },
    { path: "/beds/7:water", known: "/beds/{sensor}", reads: 2, statuses: [405, 200] },
    { path: "/beds/7:water", known: "/beds/{sensor}", method: "BREW", reads: 1, statuses: [501, 501] },
  ])("with the known route $known, $path leads to $reads descriptor read(s) in total", async (testCase) => {
    const { path, known = "/sensors/{sensor}", requestPathPrefix = "", method = "POST", reads, statuses } = testCase;
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) });
    const set = descriptorSetOf(GreenhouseService.file);
    let count = 0;
    const read = (): Promise<Uint8Array> => Promise.resolve(count++ === 0 ? withoutMethod(set, "WaterBed") : set);
    const upstream = `http://127.0.0.1:${greenhouse.address.port}`;
    const rules = [
      { selector: "greenhouse.v1.GreenhouseService.GetReading", pattern: { case: "get", value: known } },
    ] as const;
    const { baseUrl, proxy } = await openProxy([{ upstream, descriptors: { read }, rules }], { requestPathPrefix });
    const send = async (): Promise<number> => {
      const headers = { "content-type": "application/json" };
      return (await fetch(baseUrl + path, { method, headers, body: "{}" })).status;
    };
    expect(await send()).toBe(statuses[0]);
    // Runs after all reads that the call may have caused.
    await new Promise(setImmediate);
    expect(count).toBe(reads);
    if (reads > 1) await expect.poll(() => proxy.services[0]?.methods.length).toBe(5);
    for (let i = 0; i < 5; i++) expect(await send()).toBe(statuses[1]);
    expect(count).toBe(reads);
  });
});

function withoutMethod(bytes: Uint8Array, name: string): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, bytes);
  for (const { service } of set.file)
    for (const each of service) each.method = each.method.filter((method) => method.name !== name);
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, set));
}

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
