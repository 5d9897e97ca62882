import { inspect } from "node:util";
import { Code, ConnectError, createContextKey } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint, GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { callings, decodeBase64Parts, exchange, exchangeFetch, type Field, fieldValue, getReadingProcedure,
  greenhouseClient, type Http2Server, type HttpRequest, type HttpVersion, rpcRequest, shared, startGreenhouse,
  type TestGreenhouse, throws, waterBedProcedure, wireFormats, wires } from "@protoport/testing";

const empty = Buffer.alloc(0);
const recordReadingsProcedure = "/greenhouse.v1.GreenhouseService/RecordReadings";
/** The HTTP versions that each kind of server supports. */
const versionsBy: Readonly<Record<Http2Server, readonly HttpVersion[]>> = { listening: ["1.1", "2"], mounted: ["2"] };

const rpc = (format: keyof typeof wireFormats, procedure: string, body: Uint8Array = empty): HttpRequest =>
  rpcRequest(wireFormats[format], body, [], procedure);

const get = (path: string): HttpRequest => ({ httpMethod: "GET", path, header: [] });

describe("a completed request", () => {
  const page: Endpoint = { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "" }) };
  const root: Endpoint = { ...page, path: "/.well-known/page", atRoot: true };

  test.each([
    { path: "/api/sensors/kitchen/reading?at=now", httpRoute: "/api/sensors/{sensor}/reading" },
    { path: "/api/page", httpRoute: "/api/page" },
    { path: "/.well-known/page", httpRoute: "/.well-known/page" },
    { path: "/api/nothing", httpRoute: undefined },
    { path: `/api${getReadingProcedure}?encoding=json&message=%7B%7D`, httpRoute: undefined },
  ])("with the path $path has $httpRoute as its route", async ({ path, httpRoute }) => {
    const options = { requestPathPrefix: "/api", endpoints: [page, root] };
    await using greenhouse = await startGreenhouse({ getReading: () => ({}) }, options);
    for (const version of versionsBy.listening) await exchange(greenhouse.address, version, get(path));
    const versions = await Promise.all([1, 2].map((count) => greenhouse.completed(count)));
    expect(versions.map((response) => ({ route: response.httpRoute, version: response.httpVersion }))).toEqual([
      { route: httpRoute, version: "1.1" },
      { route: httpRoute, version: "2.0" },
    ]);
  });

  test("has one route, because a rule cannot use an endpoint's path", async () => {
    const selector = "greenhouse.v1.GreenhouseService.WaterBed";
    const rest: GatewayOptions["rest"] = { rules: [{ selector, pattern: { case: "post", value: root.path } }] };
    const options = { requestPathPrefix: "/api", rest };
    await using _ = await startGreenhouse({}, { ...options, endpoints: [root] });
    const below = startGreenhouse({}, { ...options, endpoints: [{ ...root, atRoot: false }] });
    await expect(below).rejects.toThrow("the path is already used by an RPC or an endpoint");
  });

  test("has no credential in any member", async () => {
    const logged: string[] = [];
    const onResponse: GatewayOptions["onResponse"] = (response) => {
      logged.push(inspect(response, { depth: Infinity }), JSON.stringify(response));
    };
    await using greenhouse = await startGreenhouse({}, { onResponse });
    const request = { ...get("/nothing"), header: [["authorization", "Bearer s3cret"]] satisfies Field[] };
    for (const version of versionsBy.listening) await exchange(greenhouse.address, version, request);
    expect([logged.length, logged.filter((text) => text.includes("s3cret"))]).toEqual([4, []]);
  });
});

test("onRequest runs before admit, and sets context values for later hooks", async () => {
  const noteKey = createContextKey("");
  const received: string[] = [];
  await using greenhouse = await startGreenhouse(
    { waterBed: () => ({}) },
    {
      onRequest: ({ procedure, contextValues }) => void contextValues.set(noteKey, `note of ${procedure}`),
      admit: ({ contextValues }) => void received.push(contextValues.get(noteKey)),
      interceptors: [
        (next) => (request) => {
          received.push(request.contextValues.get(noteKey));
          return next(request);
        },
      ],
      onResponse: ({ contextValues }) => void received.push(contextValues.get(noteKey)),
    },
  );
  await exchange(greenhouse.address, "2", rpc("connect-json", waterBedProcedure, Buffer.from("{}")));
  expect(received).toEqual(Array(3).fill(`note of ${waterBedProcedure}`));
});

describe("CORS", () => {
  const origin: Field = ["origin", "https://shop.example"];
  let admitCalls = 0;
  const greenhouse = shared(() =>
    startGreenhouse(
      { waterBed: () => ({}), getReading: () => ({}) },
      {
        cors: { origins: ["https://shop.example"] },
        admit: ({ header }) => {
          admitCalls += 1;
          if (header.get("x-refuse") !== null) throw new ConnectError("no", Code.Unauthenticated);
        },
      },
    ),
  );
  const calls: readonly { name: string; request: HttpRequest }[] = [
    { name: "gRPC-Web", request: rpc("grpc-web", waterBedProcedure) },
    { name: "gRPC-Web-Text", request: rpc("grpc-web-text", waterBedProcedure) },
    { name: "Connect", request: rpc("connect-json", waterBedProcedure, Buffer.from("{}")) },
    { name: "Connect GET", request: get(`${getReadingProcedure}?encoding=json&message=%7B%7D`) },
    { name: "REST", request: get("/sensors/s/reading") },
    { name: "404", request: get("/nothing") },
    { name: "405", request: { ...get("/sensors/s/reading"), httpMethod: "OPTIONS" } },
  ];
  const ways = [
    ...versionsBy.listening.map((version) => (request: HttpRequest) => exchange(greenhouse.address, version, request)),
    (request: HttpRequest) => exchangeFetch(greenhouse.gateway.fetch, request),
  ];

  test.each(calls)("lets pages of an allowed origin read $name responses and refusals", async ({ request }) => {
    for (const send of ways)
      for (const more of [[], [["x-refuse", "1"] as const]]) {
        const response = await send({ ...request, header: [...request.header, origin, ...more] });
        expect(fieldValue(response.header, "access-control-allow-origin")).toBe("https://shop.example");
        expect(fieldValue(response.header, "access-control-expose-headers")).toMatch(/grpc-status/i);
        expect(fieldValue(response.header, "vary")).toMatch(/origin/);
      }
  });

  test.each(calls)("responds to the preflight of $name without calling admit", async ({ request }) => {
    admitCalls = 0;
    for (const send of ways) {
      const header: Field[] = [origin, ["access-control-request-method", request.httpMethod], ["x-refuse", "1"]];
      const response = await send({ httpMethod: "OPTIONS", path: request.path, header });
      expect(response).toMatchObject({ httpStatus: 204, body: empty });
      expect(fieldValue(response.header, "access-control-allow-origin")).toBe("https://shop.example");
      expect(fieldValue(response.header, "access-control-allow-headers")).toMatch(/authorization/i);
      expect(fieldValue(response.header, "access-control-allow-headers")).toMatch(/connect-protocol-version/i);
      expect(fieldValue(response.header, "access-control-allow-headers")).toMatch(/x-grpc-web/i);
    }
    expect(admitCalls).toBe(0);
  });
});

describe("an error received from another server", () => {
  let upstream: TestGreenhouse;
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    const secret = { "x-upstream": "secret" };
    upstream = await startGreenhouse({ waterBed: throws(new ConnectError("dry", Code.FailedPrecondition, secret)) });
    const [calling] = callings;
    if (calling === undefined) throw new Error("there is no client");
    const client = greenhouseClient(calling, upstream.address);
    greenhouse = await startGreenhouse(
      { waterBed: () => client.waterBed({}) },
      {
        admit: async ({ header }) => {
          if (header.get("x-ask-upstream") !== null) await client.waterBed({});
        },
      },
    );
  });
  afterAll(async () => {
    await greenhouse[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test.each(wires)("is passed on over $name without its metadata", async ({ format, httpVersion }) => {
    const message = Buffer.from(format.codec === "proto" ? "" : "{}");
    const restHeader = [["content-type", "application/json"] as const];
    const rest = { httpMethod: "POST", path: "/beds/1:water", header: restHeader, body: message };
    const call = format.protocol === "rest" ? rest : rpcRequest(format, message, [], waterBedProcedure);
    for (const more of [[], [["x-ask-upstream", "1"] as const]]) {
      const request = { ...call, header: [...call.header, ...more] };
      const { header, trailer, body } = await exchange(greenhouse.address, httpVersion, request);
      const output = JSON.stringify([header, trailer, String(body), decodeBase64Parts(body).toString("latin1")]);
      expect(output).toContain("dry");
      expect(output).not.toContain("secret");
    }
  });
});

test("onRequest gets stream: true only for streaming RPCs", async () => {
  const received: boolean[] = [];
  const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
  const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
    { selector, pattern: { case: "post", value: "/readings" }, body: "*" },
  ];
  const onRequest: GatewayOptions["onRequest"] = ({ stream }) => void received.push(stream);
  await using greenhouse = await startGreenhouse({}, { rest: { rules }, onRequest });
  for (const [path, contentType] of [
    [waterBedProcedure, "application/json"],
    ["/beds/1:water", "application/json"],
    [recordReadingsProcedure, "application/connect+json"],
    ["/readings", "application/x-ndjson"],
  ] as const) {
    const header: readonly Field[] = [["content-type", contentType]];
    await exchange(greenhouse.address, "1.1", { httpMethod: "POST", path, header, body: Buffer.from("{}") });
  }
  expect(received).toEqual([false, false, true, true]);
});
