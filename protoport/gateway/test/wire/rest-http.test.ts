// oxfmt-ignore
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync
} from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Health } from "../../src/health/index.ts";
// oxfmt-ignore
import { createTestGateway, exchangeFetch, type Field, type HttpRequest, type HttpResponse, type HttpVersion,
  KeptConnections, startKitchenSink, type TestGateway, waysFor } from "@protoport/testing";

const shop = "https://shop.example";
// Its rule would allow every method.
const anyMethod = "kitchensink.v1.KitchenSink.Any";
const healthCheck = "grpc.health.v1.Health.Check";
const transports: readonly (HttpVersion | "fetch")[] = ["1.1", "2", "fetch"];
let gateway: TestGateway;
let talking: TestGateway;
const connections = new KeptConnections();

beforeAll(async () => {
  const pattern = { case: "custom", value: { kind: "QUERY", path: "/v1/search" } } as const;
  const rules = [{ selector: "kitchensink.v1.KitchenSink.Unbound", pattern, body: "*" }];
  const rest = { rules, omit: [anyMethod] };
  gateway = await startKitchenSink({ cors: { origins: [shop] }, readMaxBytes: 10_000, rest });
  talking = await startTalking();
});

afterAll(async () => {
  connections[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
  await talking[Symbol.asyncDispose]();
});

// Starts a gateway with a path prefix whose handler sets a header and a trailer.
async function startTalking(): Promise<TestGateway> {
  const talkative = createTestGateway({
    requestPathPrefix: "/api",
    routes: (router) =>
      router.rpc(Health.method.check, (_, { responseHeader, responseTrailer }) => {
        responseHeader.set("x-early", "1");
        responseHeader.set("connection", "close");
        responseHeader.set("grpc-status", "0");
        responseHeader.set("content-type", "text/plain");
        responseTrailer.set("x-late", "2");
        return {};
      }),
    rest: { rules: [{ selector: healthCheck, pattern: { case: "get", value: "/check/{service}" } }] },
  });
  const address = await talkative.listen({ host: "127.0.0.1", port: 0 });
  return { address, fetch: talkative.fetch, [Symbol.asyncDispose]: () => talkative.close() };
}

async function exchange(transport: HttpVersion | "fetch", request: HttpRequest, to = gateway): Promise<HttpResponse> {
  if (transport === "fetch") return await exchangeFetch(to.fetch, request);
  return await connections.exchange(to.address, transport, request);
}

const get = (path: string, ...header: Field[]): HttpRequest => ({ httpMethod: "GET", path, header });

function post(body: Uint8Array, ...header: Field[]): HttpRequest {
  return { httpMethod: "POST", path: "/v1/sinks", header: [["content-type", "application/json"], ...header], body };
}

function headerOf(answer: HttpResponse): Record<string, string> {
  // Several fields with one name form one list (RFC 9110 §5.3).
  const byName = Map.groupBy(answer.header, ([name]) => name);
  return Object.fromEntries([...byName].map(([name, fields]) => [name, fields.map(([, value]) => value).join(", ")]));
}

const codings = [
  { name: "gzip", pack: gzipSync, unpack: gunzipSync },
  { name: "br", pack: brotliCompressSync, unpack: brotliDecompressSync },
  { name: "zstd", pack: zstdCompressSync, unpack: zstdDecompressSync },
];

describe.each(waysFor(transports))("REST over %s", (transport) => {
  test.each(codings)("decompresses a $name body", async ({ name, pack }) => {
    const answer = await exchange(transport, post(pack(Buffer.from('{"fString":"a"}')), ["content-encoding", name]));
    expect(answer.httpStatus, answer.body.toString()).toBe(200);
    expect(JSON.parse(answer.body.toString())).toEqual({ rpc: "Create", sink: { fString: "a" } });
  });

  test.each(codings)("compresses a large response with $name if the client accepts it", async ({ name, unpack }) => {
    const text = "a".repeat(5000);
    const answer = await exchange(transport, get(`/v1/string/${text}`, ["accept-encoding", name]));
    const vary: unknown = expect.stringContaining("accept-encoding");
    expect(headerOf(answer)).toMatchObject({ "content-encoding": name, vary });
    expect(answer.body.byteLength).toBeLessThan(1000);
    expect(JSON.parse(unpack(answer.body).toString())).toEqual({ rpc: "Types", sink: { fString: text } });
  });

  test.each([
    { why: "without Accept-Encoding", header: [] },
    { why: "if identity is preferred", header: [["accept-encoding", "identity, gzip;q=0.5"] as const] },
  ])("does not compress responses $why, even large ones", async ({ header }) => {
    const answer = await exchange(transport, get(`/v1/string/${"a".repeat(5000)}`, ...header));
    expect(headerOf(answer)).not.toHaveProperty("content-encoding");
    expect(headerOf(answer)["vary"]).toContain("accept-encoding");
  });

  test.each(codings)("refuses an invalid $name body", async ({ name }) => {
    const answer = await exchange(transport, post(Buffer.from("{}"), ["content-encoding", name]));
    expect(answer.httpStatus).toBe(400);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: Code.InvalidArgument });
  });

  test.each(codings)("refuses a small $name body whose decompressed size exceeds the limit", async ({ name, pack }) => {
    const bomb = pack(Buffer.from(`{"fString":"${"a".repeat(1_000_000)}"}`));
    expect(bomb.byteLength).toBeLessThan(10_000);
    const answer = await exchange(transport, post(bomb, ["content-encoding", name]));
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: Code.ResourceExhausted });
    expect([413, 429]).toContain(answer.httpStatus);
  });

  test.each<{ header: Field }>([
    { header: ["grpc-timeout", "0n"] },
    { header: ["connect-timeout-ms", "0"] },
    { header: ["x-server-timeout", "0"] },
  ])("responds with 504 to the expired timeout $header before parsing the URL", async ({ header }) => {
    for (const path of ["/v1/query", "/v1/int64/x"]) {
      const answer = await exchange(transport, get(path, header));
      expect(answer.httpStatus).toBe(504);
      expect(JSON.parse(answer.body.toString())).toMatchObject({ code: Code.DeadlineExceeded });
    }
  });

  test("parses the URL only after the request gate admits the call", async () => {
    const seen: string[] = [];
    await using gated = await startKitchenSink({
      rest: { service: () => ({ lenient: true }), onIgnored: () => void seen.push("ignored") },
      requestGate: () => {
        seen.push("gate");
        throw new ConnectError("not now", Code.Unauthenticated);
      },
    });
    for (const path of ["/v1/int64/x", "/v1/query?nope=1", "/v1/query"])
      expect((await exchange(transport, get(path), gated)).httpStatus).toBe(401);
    expect(seen).toEqual(["gate", "gate", "gate"]);
  });

  test("sends response metadata as header fields, except connection and body fields", async () => {
    const answer = await exchange(transport, get("/api/check/me"), talking);
    const header = headerOf(answer);
    expect(answer.httpStatus).toBe(200);
    expect(header).toMatchObject({ "x-early": "1", "x-late": "2", "content-type": "application/json" });
    expect(header).not.toHaveProperty("grpc-status");
    expect(header["connection"]).not.toBe("close");
  });

  test.each([
    { path: "/check/me", httpStatus: 404 },
    { path: "/apicheck/me", httpStatus: 404 },
    { path: "/api", httpStatus: 404 },
    { path: "/API/check/me", httpStatus: 404 },
    { path: "/%61pi/check/me", httpStatus: 404 },
    { path: "/api/check/me", httpStatus: 200 },
  ])("responds to $path with $httpStatus, given the prefix /api", async ({ path, httpStatus }) => {
    expect((await exchange(transport, get(path), talking)).httpStatus).toBe(httpStatus);
  });
});

// QUERY (RFC 10008): a safe method with a body.

const jsonField: Field = ["content-type", "application/json"];
const textField: Field = ["content-type", "text/plain"];

async function search(
  transport: HttpVersion | "fetch",
  httpMethod: string,
  header: readonly Field[],
  body = "",
): Promise<HttpResponse> {
  const request = { httpMethod, path: "/v1/search", header, ...(body !== "" && { body: Buffer.from(body) }) };
  return await exchange(transport, request);
}

describe.each(transports)("QUERY over %s", (transport) => {
  test.each([
    ["reads the body", [jsonField], '{"fInt32":7}', 200, '"fInt32":7'],
    ["accepts a missing body", [], "", 200, '"rpc":"Unbound"'],
    ["refuses a body without a content type", [], "{}", 415, "the content type is missing"],
    ["refuses a body of another content type", [textField], "{}", 415, "the content type must be application/json"],
  ])("%s", async (_name, header, body, status, want) => {
    const { httpStatus, body: received } = await search(transport, "QUERY", header, body);
    expect([httpStatus, String(Buffer.from(received))]).toEqual([status, expect.stringContaining(want)]);
  });

  // HEAD, OPTIONS and GET have no body, on which the response to a QUERY depends.
  test.each(["HEAD", "OPTIONS", "GET"])("is listed in Allow if %s gets status 405", async (httpMethod) => {
    const response = await search(transport, httpMethod, []);
    expect(response.httpStatus).toBe(405);
    expect(response.header).toContainEqual(["allow", "QUERY"]);
  });

  test("is allowed by CORS after a preflight", async () => {
    const header = Object.entries({ origin: shop, "access-control-request-method": "QUERY" });
    const response = await search(transport, "OPTIONS", header);
    expect(response.httpStatus).toBe(204);
    const allowed = response.header.find(([name]) => name === "access-control-allow-methods");
    expect(allowed?.[1].split(", ")).toContain("QUERY");
  });
});
