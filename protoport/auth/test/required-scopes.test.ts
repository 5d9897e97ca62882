import type { DescService } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, createClient, createContextValues } from "@connectrpc/connect";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Admit, type BoundAddress, type GatewayOptions } from "../../gateway/src/index.ts";
import { createOpenApi } from "../../gateway/src/openapi/index.ts";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { withOpenTelemetry } from "../../telemetry/src/opentelemetry/index.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { errorOf } from "../../testing/src/gateway/call-end.ts";
import { waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { statelessRequest, toolNameOf } from "../../testing/src/gateway/mcp.ts";
import { greenhouseWithOptions, scopedGreenhouse } from "../../testing/src/gateway/restricted.ts";
import { createTestGateway } from "../../testing/src/gateway/test-gateway.ts";
import { KitchenSink } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { createBearerAuth } from "../src/bearer-auth.ts";
import type { BearerAuthOptions } from "../src/bearer-auth-options.ts";
import { limitRates } from "../src/rate-limit.ts";
import { requiredScopesOf } from "../src/required-scopes.ts";
import type { TokenVerifier } from "../src/token-verifier.ts";
import { isPeerAtLeast } from "@protoport/testing/process";

// The RPC option protoport.auth.v1.required_scopes. A token's text is its scopes, separated by "+".

const verifier: TokenVerifier = {
  verify: ({ text }) => ({ kind: "principal", subject: "ada", issuer: undefined, scopes: new Set(text.split("+")) }),
};

const watchProcedure = "/greenhouse.v1.GreenhouseService/WatchReadings";
const withoutReading = scopedGreenhouse({ WaterBed: [], WatchReadings: [], RecordReadings: [] });
const greenhouse = scopedGreenhouse({
  GetReading: [],
  WaterBed: ["beds.water", "beds.manage"],
  WatchReadings: ["readings.watch"],
  RecordReadings: ["readings.record", "readings.record"],
});
const services = [greenhouse, KitchenSink];
const open = [`/${greenhouse.typeName}/ControlClimate`];
const auth = createBearerAuth(verifier, { realm: "r", services, open });

const gateway = createTestGateway({
  routes: (router) => {
    router.service(greenhouse, { getReading: ({ sensor }) => ({ sensor }), waterBed: ({ bed }) => ({ bed }) });
    router.service(KitchenSink, { types: () => ({}) });
  },
  mcp: createMcp({ tools: [`${greenhouse.typeName}.*`], scopesOf: requiredScopesOf }),
  admit: auth.admit,
});
let at: BoundAddress;
beforeAll(async () => void (at = await gateway.listen({ host: "127.0.0.1" })));
afterAll(() => gateway.close());

const challenge =
  'Bearer realm="r", error="insufficient_scope", error_description="the token lacks the scope beds.manage", ' +
  'scope="beds.water beds.manage"';

const transports: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
};

function withToken(text: string): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { authorization: `Bearer ${text}` } };
}

test.each(Object.entries(transports))("over %s, an RPC requires all of its scopes", async (_, openTransport) => {
  const transport = openTransport(`http://${at.address}:${at.port}`);
  const client = createClient(greenhouse, transport);
  const error = await errorOf(client.waterBed({ bed: 1n }, withToken("beds.water")));
  expect(error).toMatchObject({ code: Code.PermissionDenied });
  expect(error.metadata.get("www-authenticate")).toBe(challenge);
  expect(await client.waterBed({ bed: 1n }, withToken("beds.manage+beds.water"))).toMatchObject({ bed: 1n });
  expect(await client.getReading({ sensor: "a" }, withToken("other"))).toMatchObject({ sensor: "a" });
  // The other service has no scopes.
  expect(await createClient(KitchenSink, transport).types({}, withToken("other"))).toMatchObject({});
});

test("OpenAPI lists the scopes of each operation", () => {
  const { paths } = createOpenApi([greenhouse], {
    info: { title: "t", version: "1" },
    securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    describeSecurity: auth.describeSecurity("bearer"),
  });
  expect(paths["/beds/{bed}:water"]?.post?.security).toEqual([{ bearer: ["beds.water", "beds.manage"] }]);
  expect(auth.describeSecurity("bearer")(greenhouse.method.controlClimate)).toEqual([]);
});

test("MCP lists the scopes of each tool", async () => {
  const request = statelessRequest("tools/list", {}, [["authorization", "Bearer other"]]);
  const { result } = JSON.parse(String((await exchangeHttp1(at, request)).body));
  expect(result.tools.map(({ name, _meta }: { name: string; _meta?: object }) => [name, _meta])).toEqual([
    [toolNameOf(`/${greenhouse.typeName}/GetReading`), { securitySchemes: [{ type: "oauth2", scopes: [] }] }],
    [toolNameOf(waterBedProcedure), { securitySchemes: [{ type: "oauth2", scopes: ["beds.water", "beds.manage"] }] }],
    [toolNameOf(watchProcedure), { securitySchemes: [{ type: "oauth2", scopes: ["readings.watch"] }] }],
  ]);
});

test("requiredScopesOf returns each scope of an RPC once", () => {
  const scopes = [[], ["beds.water", "beds.manage"], ["readings.watch"], ["readings.record"], undefined];
  expect(greenhouse.methods.map(requiredScopesOf)).toEqual(scopes);
  expect(GreenhouseService.methods.flatMap(requiredScopesOf)).toEqual(Array(5).fill(undefined));
});

const checks: Readonly<Record<string, (options: BearerAuthOptions) => Partial<GatewayOptions>>> = {
  "createBearerAuth's admit": (options) => ({ admit: createBearerAuth(verifier, options).admit }),
  "createBearerAuth's interceptor": (options) => ({ interceptors: [createBearerAuth(verifier, options).interceptor] }),
};

const noScopes = { GetReading: [], WaterBed: [], WatchReadings: [], RecordReadings: [], ControlClimate: [] };
const watched = { WatchReadings: ["readings.watch"], RecordReadings: ["readings.record"] };
const otherGreenhouse = scopedGreenhouse({ GetReading: [], WaterBed: [], ...watched });

describe.each(
  // oxfmt-ignore
  [
    { name: "services lists only another service", services: [KitchenSink], check: "createBearerAuth's admit" },
    { name: "services lists only another service", services: [KitchenSink], check: "createBearerAuth's interceptor" },
    { name: "services is missing", check: "createBearerAuth's interceptor" },
    { name: "services is missing and only another RPC has the option", served: scopedGreenhouse({ WatchReadings: [] }),
      check: "createBearerAuth's interceptor" },
    { name: "services lists a descriptor with other scopes", services: [KitchenSink, otherGreenhouse],
      check: "createBearerAuth's interceptor" },
  ],
)("$check, if $name", ({ services: listed, served = greenhouse, check }) => {
  test("refuses calls to RPCs with unknown scopes", async () => {
    const faults: unknown[] = [];
    const called: bigint[] = [];
    const server = createTestGateway({
      routes: (router) => {
        router.service(served, {
          getReading: ({ sensor }) => ({ sensor }),
          waterBed: ({ bed }) => (called.push(bed), { bed }),
        });
        router.service(KitchenSink, { types: () => ({}) });
      },
      ...checks[check]?.({ realm: "r", services: listed, open: [...open, `/${greenhouse.typeName}/GetReading`] }),
      onFault: (fault) => faults.push(fault),
    });
    const { address, port } = await server.listen({ host: "127.0.0.1" });
    try {
      const transport = createGrpcTransport({ baseUrl: `http://${address}:${port}` });
      const client = createClient(greenhouse, transport);
      const refused = await errorOf(client.waterBed({ bed: 1n }, withToken("beds.water+beds.manage")));
      expect(refused).toMatchObject({ code: Code.Internal });
      expect(refused.message).not.toContain("services");
      expect(called).toEqual([]);
      const water = "greenhouse.v1.GreenhouseService.WaterBed";
      const problem = `the served descriptor of ${water} is missing; list all services of the server`;
      const message = `option "services" of createBearerAuth: ${problem}`;
      expect(faults).toEqual([expect.objectContaining({ code: "ERR_OPTIONS", message })]);
      expect(await client.getReading({ sensor: "a" })).toMatchObject({ sensor: "a" });
      expect(await createClient(KitchenSink, transport).types({}, withToken("other"))).toMatchObject({});
    } finally {
      await server.close();
    }
  });
});

const wrapped = (inner: Admit): Admit => limitRates(inner, { perAddress: 100 });
const missing = (rpc: string): string =>
  `the option required_scopes of ${rpc} is not checked: set services of createBearerAuth, or return the scopes from ` +
  "requiredScope";
const start = (given: Admit, served: DescService): unknown =>
  createTestGateway({ routes: (router) => router.service(served, {}), admit: given });

describe("createBearerAuth without services", () => {
  const { admit } = createBearerAuth(verifier, { realm: "r", open });
  const requiring = (scopes: readonly string[]): Admit =>
    createBearerAuth(verifier, { realm: "r", open, requiredScope: () => scopes }).admit;
  const all = ["beds.water", "beds.manage", "readings.watch", "readings.record"];
  test.each<{
    name: string;
    admit: Admit;
    served: typeof greenhouse;
    rpc: string;
    wrap?: (options: GatewayOptions) => GatewayOptions;
  }>([
    { name: "its admit", admit, served: greenhouse, rpc: "WaterBed" },
    { name: "limitRates", admit: wrapped(admit), served: greenhouse, rpc: "WaterBed" },
    { name: "withOpenTelemetry", admit, served: greenhouse, rpc: "WaterBed", wrap: withOpenTelemetry },
    { name: "fewer scopes", admit: requiring(all.slice(1)), served: greenhouse, rpc: "WaterBed" },
    { name: "an RPC without the option", admit, served: withoutReading, rpc: "GetReading" },
  ])("with $name refuses the start of a gateway", ({ admit: given, served, rpc, wrap = (each) => each }) => {
    const routes = (router: ConnectRouter): unknown => router.service(KitchenSink, {}).service(served, {});
    const options: GatewayOptions = { routes, admit: given };
    expect(() => createTestGateway(wrap(options))).toThrow(
      expect.objectContaining({ code: "ERR_OPTIONS", message: missing(`${greenhouse.typeName}.${rpc}`) }),
    );
  });

  test("does not refuse a service without the option, open RPCs or scopes of requiredScope", () => {
    expect(start(admit, KitchenSink)).toBeDefined();
    expect(start(wrapped(requiring(all)), greenhouse)).toBeDefined();
    const allOpen = createBearerAuth(verifier, { realm: "r", open: [greenhouse.typeName] });
    expect(start(allOpen.admit, greenhouse)).toBeDefined();
  });
});

describe("the challenge of an MCP call before 2026-07-28", () => {
  const challengeFor = (scopes: readonly string[]): string | null => {
    const { admit: check } = createBearerAuth(
      { verify: () => ({ kind: "principal", subject: "ada", issuer: undefined, scopes: new Set(scopes) }) },
      { realm: "r", services, open },
    );
    const header = new Headers({ "mcp-protocol-version": "2025-11-25" });
    const request = { authorization: "Bearer t", connection: {}, contextValues: createContextValues(), header };
    const checkProcedure = check({ ...request, procedure: undefined });
    if (typeof checkProcedure !== "function") throw new TypeError("admit does not check the procedure");
    try {
      void checkProcedure(waterBedProcedure);
      return null;
    } catch (error) {
      return ConnectError.from(error).metadata.get("www-authenticate");
    }
  };

  test.each([
    ["some other scopes", ["b", "beds.water"], "b beds.water beds.manage"],
    ["scopes that a challenge cannot have", ['"', "李", "a b", "b"], "b beds.water beds.manage"],
    ["too many scopes", Array.from({ length: 1000 }, (_, index) => `scope-${index}`), "beds.water beds.manage"],
  ])("for a token with %s has the scopes to request", (_name, scopes, want) => {
    expect(challengeFor(scopes)).toContain(`scope="${want}"`);
  });

  test("is not sent to a token with all scopes", () => expect(challengeFor(["beds.manage", "beds.water"])).toBeNull());
});

test.each(["a b", "", "李", '"'])("the scope %j is refused in initialScopes", (scope) => {
  const message = `option "initialScopes" of createBearerAuth: no token can have the scope "${scope}"`;
  const error = expect.objectContaining({ code: "ERR_OPTIONS", message });
  expect(() => createBearerAuth(verifier, { realm: "r", initialScopes: ["a", scope] })).toThrow(error);
});

test("describeSecurity refuses a service missing from the option services", () => {
  const { describeSecurity } = createBearerAuth(verifier, { realm: "r", services: [KitchenSink] });
  const call = (): unknown => describeSecurity("b")(greenhouse.method.waterBed);
  expect(call).toThrow(expect.objectContaining({ code: "ERR_OPTIONS" }));
});

const invalidUtf8 = new BinaryWriter().bytes(Uint8Array.of(0x0a, 1, 0xff)).finish();
const notUtf8 = { name: "a scope that is not UTF-8", wireType: WireType.LengthDelimited, data: invalidUtf8 };

test.each(
  // oxfmt-ignore
  [
    ["a service with the option on only some RPCs", { WaterBed: ["a"], GetReading: [], WatchReadings: [] },
      "greenhouse.v1.GreenhouseService.RecordReadings, greenhouse.v1.GreenhouseService.ControlClimate must have the " +
        "option protoport.auth.v1.required_scopes, as other RPCs of the service do; {} accepts every valid token"],
    ["two scopes in one string",
      { GetReading: ["a b"], WaterBed: [], WatchReadings: [], RecordReadings: [], ControlClimate: [] },
      'greenhouse.v1.GreenhouseService.GetReading requires the scope "a b", which no token can have'],
    ["an empty scope", { GetReading: [""], WaterBed: [], WatchReadings: [], RecordReadings: [], ControlClimate: [] },
      'greenhouse.v1.GreenhouseService.GetReading requires the scope "", which no token can have'],
  ],
)("createBearerAuth refuses %s with ERR_OPTIONS", (_name, scopes, problem) => {
  const definition = scopedGreenhouse(scopes);
  expect(() => createBearerAuth(verifier, { realm: "r", services: [KitchenSink, definition] })).toThrow(
    expect.objectContaining({ code: "ERR_OPTIONS", message: `option "services" of createBearerAuth: ${problem}` }),
  );
});

test.each([
  { name: "the stricter one first", two: [greenhouse, otherGreenhouse] },
  { name: "the stricter one last", two: [otherGreenhouse, greenhouse] },
])("createBearerAuth refuses two descriptors with different scopes, $name in the list", ({ two }) => {
  const problem = "greenhouse.v1.GreenhouseService has two descriptors with different RPCs or scopes";
  const error = { code: "ERR_OPTIONS", message: `option "services" of createBearerAuth: ${problem}` };
  const options = { realm: "r", services: [KitchenSink, ...two], open };
  expect(() => createBearerAuth(verifier, options)).toThrow(expect.objectContaining(error));
});

test("createBearerAuth accepts two descriptors with the same scopes", () => {
  const same = ["a", "b"].map(() => scopedGreenhouse({ ...noScopes, WaterBed: ["a"] }));
  const { describeSecurity } = createBearerAuth(verifier, { realm: "r", services: [KitchenSink, ...same] });
  expect(describeSecurity("b")(greenhouse.method.waterBed)).toEqual([{ b: ["a"] }]);
});

test.each([
  { name: "a varint", wireType: WireType.Varint, data: new BinaryWriter().uint32(1).finish() },
  { name: "a string", wireType: WireType.LengthDelimited, data: new BinaryWriter().string("hello").finish() },
  {
    name: "a string that decodes to a message",
    wireType: WireType.LengthDelimited,
    data: new BinaryWriter().string("(1").finish(),
  },
  // Older protobuf-es versions replace bytes that are not UTF-8.
  ...(isPeerAtLeast("@bufbuild/protobuf", "2.16") ? [notUtf8] : []),
  {
    name: "a truncated scope",
    wireType: WireType.LengthDelimited,
    data: new BinaryWriter().bytes(Uint8Array.of(0x0a, 9, 0x61)).finish(),
  },
])("createBearerAuth refuses $name as the option's value", ({ wireType, data }) => {
  const definition = greenhouseWithOptions({ WaterBed: { no: 57386, wireType, data } });
  const refusal = expect.objectContaining({
    code: "ERR_OPTIONS",
    message:
      "the option 57386 of greenhouse.v1.GreenhouseService.WaterBed must be a protoport.auth.v1.RequiredScopes that " +
      "contains only scopes",
  });
  expect(() => createBearerAuth(verifier, { realm: "r", services: [KitchenSink, definition] })).toThrow(refusal);
  expect(() => requiredScopesOf(definition.method.waterBed)).toThrow(refusal);
});

test("createBearerAuth calls requiredScope only for services without the option", () => {
  const asked: string[] = [];
  const requiredScope = (procedure: string): string => (asked.push(procedure), "other");
  const { describeSecurity } = createBearerAuth(verifier, { realm: "r", services, open, requiredScope });
  expect(describeSecurity("b")(KitchenSink.method.types)).toEqual([{ b: ["other"] }]);
  expect(describeSecurity("b")(greenhouse.method.getReading)).toEqual([{ b: [] }]);
  expect(asked).toEqual(["/kitchensink.v1.KitchenSink/Types"]);
});
