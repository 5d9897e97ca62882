import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { request as requestHttp } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test, describe } from "vitest";
import { createGrpcTransport } from "../../../../src/client/index.ts";
import { createProxy, type ForwardRules } from "../../../../src/create-proxy.ts";
import { errorCodeOf, type GatewayOptions } from "../../../../../gateway/src/index.ts";
import { GreenhouseService, FileService, startGreenhouse, startProxy, eventsOf } from "@protoport/testing/proxy";
import { startFiles } from "../../../../../testing/src/gateway/files.ts";
import { exchangeHttp1, fieldValue, collect, type Field, type HttpRequest, statelessRequest } from "@protoport/testing";
import { startProxied } from "../../../support/greenhouses.ts";
import { createMcp } from "../../../../../gateway/src/mcp/index.ts";

// Gateway features that a proxy has too.

const files = [GreenhouseService.file];
// oxfmt-ignore
const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
  { selector: "greenhouse.v1.GreenhouseService.WatchReadings",
    pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
  { selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern: { case: "post", value: "/readings" },
    body: "*" },
];

const urlOf = (port: number): string => `http://127.0.0.1:${port}`;

test("REST streams messages in both directions, and reports errors in JSON", async () => {
  const implementation: Parameters<typeof startProxied>[0] = {
    async *watchReadings({ sensor, count }) {
      for (let at = 0; at < count; at += 1) yield { sensor: `s${at}` };
      if (sensor === "broken") throw new ConnectError("no sensor", Code.NotFound);
    },
    recordReadings: async (readings) => ({ count: (await collect(readings)).length }),
  };
  const codes: unknown[] = [];
  const onError = (_: unknown, error: ConnectError): void => void codes.push(errorCodeOf(error));
  await using proxy = await startProxied(implementation, { upstreamOptions: { rules }, onError });
  const get = async (path: string): Promise<readonly [number, string]> => {
    const response = await fetch(proxy.baseUrl + path);
    return [response.status, await response.text()];
  };
  const record = '{"code":5,"status":"NOT_FOUND","message":"no sensor","details":[]}';
  expect(await get("/sensors/a/readings?count=2")).toEqual([200, '{"sensor":"s0"}\n{"sensor":"s1"}\n']);
  expect(await get("/sensors/broken/readings?count=1")).toEqual([200, `{"sensor":"s0"}\n{"@error":${record}}\n`]);
  expect(await get("/sensors/broken/readings")).toEqual([404, record]);
  const body = '{"sensor":"a"}\n{"sensor":"b"}\n';
  const headers = { "content-type": "application/x-ndjson" };
  const response = await fetch(`${proxy.baseUrl}/readings`, { method: "POST", headers, body });
  expect([response.status, await response.text()]).toEqual([200, '{"count":2}']);
  const invalid = '{"sensor":"a"}\n{"sensor":1}\n';
  const broken = await fetch(`${proxy.baseUrl}/readings`, { method: "POST", headers, body: invalid });
  expect([broken.status, await broken.text()]).toEqual([400, expect.stringContaining("sensor")]);
  // Upstream errors have no identifier.
  expect(codes).toEqual([undefined, undefined, "ERR_MESSAGE_INVALID"]);
});

test("hooks run in their own request's async context on a shared connection", async () => {
  await using upstream = await startGreenhouse({
    getReading: ({ sensor }) => {
      if (sensor === "broken") throw new ConnectError("no sensor", Code.NotFound);
      return { sensor };
    },
  });
  const context = new AsyncLocalStorage<string | null>();
  const events: unknown[] = [];
  await using proxy = await startProxy(urlOf(upstream.address.port), files, {
    onRequest: ({ xRequestId }) => context.enterWith(xRequestId),
    onError: ({ xRequestId }) => void events.push(["error", xRequestId, context.getStore()]),
    onResponse: () => void events.push(["answer", context.getStore()]),
  });
  await using transport = createGrpcTransport({ baseUrl: proxy.baseUrl });
  const client = createClient(GreenhouseService, transport);
  const get = (sensor: string, id: string): Promise<unknown> =>
    client.getReading({ sensor }, { headers: { "x-request-id": id } }).catch(() => undefined);
  for (const id of ["1", "2"]) await get("a", id);
  await get("broken", "3");
  expect(events).toEqual([
    ["answer", "1"],
    ["answer", "2"],
    ["error", "3", "3"],
    ["answer", "3"],
  ]);
});

test("a google.api.HttpBody is returned as bytes", async () => {
  const bytes = Buffer.from([0x00, 0xff, 0x0a]);
  await using upstream = await startFiles("listening", {
    getFile: ({ name }, { responseHeader }) => {
      responseHeader.set("content-disposition", `attachment; filename="${name}"`);
      return { contentType: "image/png", data: bytes };
    },
  });
  await using proxy = await startProxy(urlOf(upstream.address.port), [FileService.file]);
  const request = { httpMethod: "GET", path: "/files/a.png", header: [] };
  const { httpStatus, header, body } = await exchangeHttp1(proxy.address, request);
  const fields = ["content-type", "content-disposition"].map((name) => fieldValue(header, name));
  expect([httpStatus, fields, body]).toEqual([200, ["image/png", 'attachment; filename="a.png"'], bytes]);
});

test("upstream connections are closed after close() or a failed start", async () => {
  let socket: unknown;
  const opened = (message: unknown): unknown => (socket = Reflect.get(Object(message), "socket"));
  subscribe("net.client.socket", opened);
  await using upstream = await startGreenhouse({ getReading: () => ({}) });
  const options = { upstreams: [{ upstream: urlOf(upstream.address.port), descriptors: "reflection" }] } as const;
  const message: unknown = expect.stringContaining("reflection");
  await expect(createProxy(options)).rejects.toMatchObject({ message, cause: { message } });
  expect(socket).toMatchObject({ closed: true });
  const { proxy } = await startProxy(urlOf(upstream.address.port), files);
  expect((await proxy.fetch(new Request("http://a/sensors/b/reading"))).status).toBe(200);
  expect(socket).toMatchObject({ closed: false });
  await proxy.close();
  expect(socket).toMatchObject({ closed: true });
  unsubscribe("net.client.socket", opened);
});

test("a drain waits for a request that is still being received", async () => {
  await using upstream = await startGreenhouse({ getReading: () => ({}), waterBed: ({ bed }) => ({ bed }) });
  const admitted = Promise.withResolvers<void>();
  const { proxy, address } = await startProxy(urlOf(upstream.address.port), files, { admit: () => admitted.resolve() });
  const headers = { "content-type": "application/json", "content-length": 2, connection: "keep-alive" };
  const at = { host: address.address, port: address.port };
  const call = requestHttp({ ...at, method: "POST", path: "/beds/1:water", headers });
  call.write("{");
  await admitted.promise;
  const drained = proxy.drain(10_000);
  const responded = once(call, "response");
  call.end("}");
  const [response] = await responded;
  expect([response.statusCode, String(await collect(response))]).toEqual([200, `{"bed":"1"}`]);
  await drained;
  expect(proxy.load.connections.http1).toBe(0);
});

const service = "greenhouse_v1_GreenhouseService";
const call = (method: string, args: object, header: readonly Field[] = []): HttpRequest =>
  statelessRequest("tools/call", { name: `${service}_${method}`, arguments: args }, header);

async function startTools(headerRules: ForwardRules = {}) {
  const credentials: (string | null)[] = [];
  const implementation: Parameters<typeof startProxied>[0] = {
    waterBed: ({ bed, note }, { requestHeader }) => {
      credentials.push(requestHeader.get("authorization"));
      if (note === "dry") throw new ConnectError("dry", Code.Aborted);
      return { bed };
    },
    async *watchReadings({ count }) {
      for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at };
    },
  };
  const mcp = createMcp({ tools: [`${GreenhouseService.typeName}.*`] });
  const proxy = await startProxied(implementation, { mcp, upstreamOptions: { requestHeader: headerRules } });
  const exchange = async (request: HttpRequest) => String((await exchangeHttp1(proxy.address, request)).body);
  return { ...proxy, credentials, exchange };
}

describe("a proxy with MCP tools", () => {
  test("lists and calls an upstream's tools", async () => {
    await using proxied = await startTools();
    expect(JSON.parse(await proxied.exchange(statelessRequest("tools/list")))).toMatchObject({
      result: { tools: ["GetReading", "WaterBed", "WatchReadings"].map((name) => ({ name: `${service}_${name}` })) },
    });
    expect(JSON.parse(await proxied.exchange(call("WaterBed", { bed: "9007199254740993" })))).toMatchObject({
      result: { structuredContent: { bed: "9007199254740993" } },
    });
    expect(JSON.parse(await proxied.exchange(call("WaterBed", { note: "dry" })))).toMatchObject({
      result: { isError: true, content: [{ text: "ABORTED: dry" }] },
    });
    expect(eventsOf(await proxied.exchange(call("WatchReadings", { count: 2 })))).toMatchObject([
      { result: { structuredContent: { messages: [{ degreesCelsius: 1 }, { degreesCelsius: 2 }] } } },
    ]);
  });

  const token = "Bearer of-the-agent";

  test.each<[name: string, want: string | null, requestHeader?: ForwardRules]>([
    ["does not forward the client's token by default", null],
    ["forwards the client's token if allow names its field", token, { allow: ["Authorization"] }],
  ])("%s", async (_name, want, requestHeader) => {
    await using proxied = await startTools(requestHeader);
    await proxied.exchange(call("WaterBed", {}, [["authorization", token]]));
    expect(proxied.credentials).toEqual([want]);
  });
});
