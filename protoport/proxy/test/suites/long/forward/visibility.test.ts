import { Code, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { file_greenhouse_v1_greenhouse } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createMcp } from "../../../../../gateway/src/mcp/index.ts";
import type { GatewayOptions } from "../../../../../gateway/src/index.ts";
import { createOpenApi } from "../../../../../gateway/src/openapi/index.ts";
import { errorOf, exchangeHttp1, startGreenhouse, statelessRequest, shared } from "@protoport/testing";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { file_files_v1_files } from "../../../../../testing/src/gen/files/v1/files_pb.ts";
import type { TestProxy } from "@protoport/testing/proxy";
import { GreenhouseService, restrictedGreenhouse, restrictedServices, startProxy } from "@protoport/testing/proxy";

const notes: string[] = [];
const upstream = shared(() =>
  startGreenhouse({
    getReading: ({ sensor }) => ({ sensor, degreesCelsius: 20 }),
    waterBed: ({ bed, liters, note }) => {
      notes.push(note);
      return { bed, liters, note: "secret" };
    },
    async *watchReadings({ count }) {
      for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at };
    },
  }),
);
const mcp = createMcp({ tools: [`${GreenhouseService.typeName}.*`] });
const start = (allow: readonly string[]): Promise<TestProxy> =>
  startProxy(`http://127.0.0.1:${upstream.address.port}`, [restrictedGreenhouse()], { visibility: { allow }, mcp });
const internal = shared(() => start(["PREVIEW"]));
const open = shared(() => start(["INTERNAL"]));
const json = { useBinaryFormat: false };
const transports: readonly { readonly name: string; readonly open: (baseUrl: string) => Transport }[] = [
  { name: "Connect with JSON", open: (baseUrl) => createConnectTransport({ ...json, baseUrl, httpVersion: "1.1" }) },
  { name: "gRPC", open: (baseUrl) => createGrpcTransport({ baseUrl }) },
  { name: "gRPC-Web", open: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }) },
];

type JsonResponse = { readonly status: number; readonly body: string };

async function post(proxy: TestProxy, path: string, body: string): Promise<JsonResponse> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(proxy.baseUrl + path, { method: "POST", headers, body });
  return { status: response.status, body: await response.text() };
}

async function callTool(proxy: TestProxy, method: string, args: object): Promise<string> {
  const name = `greenhouse_v1_GreenhouseService_${method}`;
  const request = statelessRequest("tools/call", { name, arguments: args });
  return String((await exchangeHttp1(proxy.address, request)).body);
}

describe.each(transports)("over $name", ({ open: openTransport }) => {
  test("a hidden RPC is unimplemented, and the others are served", async () => {
    const client = createClient(GreenhouseService, openTransport(internal.baseUrl));
    expect(await errorOf(client.getReading({ sensor: "a" }))).toMatchObject({ code: Code.Unimplemented });
    const temperatures: number[] = [];
    for await (const { degreesCelsius } of client.watchReadings({ count: 2 })) temperatures.push(degreesCelsius);
    expect(temperatures).toEqual([1, 2]);
  });

  test("a hidden field does not reach the upstream or the caller", async () => {
    notes.length = 0;
    const client = createClient(GreenhouseService, openTransport(internal.baseUrl));
    const { bed, liters, note, $unknown } = await client.waterBed({ bed: 1n, liters: 2, note: "mine" });
    expect([bed, liters, note, $unknown, notes]).toEqual([1n, 2, "", undefined, [""]]);
  });

  test("an allowed label makes the RPC and the field visible", async () => {
    notes.length = 0;
    const client = createClient(GreenhouseService, openTransport(open.baseUrl));
    expect(await client.getReading({ sensor: "a" })).toMatchObject({ degreesCelsius: 20 });
    expect(await client.waterBed({ bed: 1n, note: "mine" })).toMatchObject({ note: "secret" });
    expect(notes).toEqual(["mine"]);
  });
});

test("rest.omit works on an RPC that another upstream hides", async () => {
  const url = `http://127.0.0.1:${upstream.address.port}`;
  const descriptors = descriptorSetOf(restrictedGreenhouse(), file_files_v1_files);
  const other = { upstream: url, descriptors, services: ["files.*"] };
  const shown = { upstream: url, descriptors: descriptorSetOf(file_greenhouse_v1_greenhouse) };
  const statusWith = async (omit: readonly string[]): Promise<number> => {
    const options = { upstreams: [other, shown], visibility: { allow: ["PREVIEW"] }, rest: { omit } };
    await using proxy = await startProxy(url, [], options);
    return (await fetch(`${proxy.baseUrl}/sensors/a/reading`)).status;
  };
  expect([await statusWith([]), await statusWith([`${GreenhouseService.typeName}.GetReading`])]).toEqual([200, 404]);
});

describe("over REST", () => {
  test("a hidden RPC gets the response for an unknown path", async () => {
    const [hidden, unknown] = await Promise.all(
      ["/sensors/a/reading", "/sensors/a/nothing"].map(async (path) => {
        const response = await fetch(internal.baseUrl + path);
        return { status: response.status, body: await response.text() };
      }),
    );
    expect(hidden).toEqual(unknown);
    expect(hidden).toMatchObject({ status: 404 });
    expect((await fetch(`${open.baseUrl}/sensors/a/reading`)).status).toBe(200);
  });

  test("a hidden field is absent from the response", async () => {
    const hidden = await post(internal, "/beds/1:water", '{"liters":2}');
    expect(hidden).toEqual({ status: 200, body: '{"bed":"1","liters":2}' });
    const shown = await post(open, "/beds/1:water", '{"liters":2}');
    expect(shown).toMatchObject({ body: '{"bed":"1","liters":2,"note":"secret"}' });
  });
});

describe("over MCP", () => {
  test("a hidden field is absent from the result", async () => {
    const result = await callTool(internal, "WaterBed", { bed: "1" });
    expect(result).toContain("bed");
    expect(result).not.toContain("secret");
    expect(await callTool(open, "WaterBed", { bed: "1" })).toContain("secret");
  });
});

const describeApi = ({ proxy }: TestProxy): string =>
  JSON.stringify(createOpenApi(proxy.services, { info: { title: "t", version: "1" }, rest: proxy.rest }));
const maintenanceRoutes: GatewayOptions["routes"] = (router) => {
  for (const service of restrictedServices().filter(({ name }) => name === "Maintenance")) router.service(service, {});
};

test("an RPC that the proxy serves itself is hidden too", async () => {
  const statusFor = async (...allow: readonly string[]): Promise<readonly [number, string[]]> => {
    const url = `http://127.0.0.1:${upstream.address.port}`;
    const options = { routes: maintenanceRoutes, visibility: { allow } };
    await using started = await startProxy(url, [restrictedGreenhouse()], options);
    const { status } = await post(started, "/greenhouse.v1.Maintenance/Rinse", "{}");
    expect((await post(started, "/beds/1:water", "{}")).status).toBe(200);
    return [status, [...started.proxy.visibilityLabels]];
  };
  expect(await statusFor()).toEqual([404, ["INTERNAL"]]);
  expect(await statusFor("INTERNAL")).toEqual([501, ["INTERNAL"]]);
});

test("OpenAPI omits hidden RPCs and fields", () => {
  expect(describeApi(internal)).toContain("/beds/{bed}:water");
  expect(describeApi(internal)).not.toMatch(/reading"|note/);
  expect(describeApi(open)).toMatch(/reading"[^]*note/);
  expect([...internal.proxy.visibilityLabels]).toEqual(["INTERNAL"]);
});

test("rules and omissions for hidden RPCs are ignored", async () => {
  const reading = `${GreenhouseService.typeName}.GetReading`;
  const rule = { selector: reading, pattern: { case: "get", value: "/moved/{sensor}" } } as const;
  const statusFor = async (allow: readonly string[]): Promise<readonly [number, string[]]> => {
    const options = { rest: { rules: [rule] }, visibility: { allow } };
    const url = `http://127.0.0.1:${upstream.address.port}`;
    await using started = await startProxy(url, [restrictedGreenhouse()], options);
    return [(await fetch(`${started.baseUrl}/moved/4`)).status, [...started.proxy.hiddenRpcs]];
  };
  expect(await statusFor(["INTERNAL"])).toEqual([200, []]);
  expect(await statusFor([])).toEqual([404, [reading]]);
  const options = { rest: { omit: [reading] }, visibility: { allow: [] } };
  await using omitting = await startProxy("http://127.0.0.1:1", [restrictedGreenhouse()], options);
  expect(omitting.proxy.rest.omit).toEqual([]);
});
