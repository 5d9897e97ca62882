import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchangeFetch, type Field, type HttpResponse, type HttpVersion } from "../../testing/src/http/index.ts";
import { KeptConnections, startKitchenSink, type TestGateway } from "../../testing/src/index.ts";

// QUERY (RFC 10008): a safe method with a body.

const transports: readonly Transport[] = ["1.1", "2", "fetch"];
const connections = new KeptConnections();
const shop = "https://shop.example";
// Its rule would allow every method.
const anyMethod = "kitchensink.v1.KitchenSink.Any";
const json: Field = ["content-type", "application/json"];
const text: Field = ["content-type", "text/plain"];
let gateway: TestGateway;

beforeAll(async () => {
  const pattern = { case: "custom", value: { kind: "QUERY", path: "/v1/search" } } as const;
  const rules = [{ selector: "kitchensink.v1.KitchenSink.Unbound", pattern, body: "*" }];
  gateway = await startKitchenSink({ cors: { origins: [shop] }, rest: { rules, omit: [anyMethod] } });
});

afterAll(async () => {
  connections[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

type Transport = HttpVersion | "fetch";

async function send(via: Transport, httpMethod: string, header: readonly Field[], body = ""): Promise<HttpResponse> {
  const request = { httpMethod, path: "/v1/search", header, ...(body !== "" && { body: Buffer.from(body) }) };
  if (via === "fetch") return await exchangeFetch(gateway.fetch, request);
  return await connections.exchange(gateway.address, via, request);
}

describe.each(transports)("QUERY over %s", (transport) => {
  test.each([
    ["reads the body", [json], '{"fInt32":7}', 200, '"fInt32":7'],
    ["accepts a missing body", [], "", 200, '"rpc":"Unbound"'],
    ["refuses a body without a content type", [], "{}", 415, "the content type is missing"],
    ["refuses a body of another content type", [text], "{}", 415, "the content type must be application/json"],
  ])("%s", async (_name, header, body, status, want) => {
    const { httpStatus, body: received } = await send(transport, "QUERY", header, body);
    expect([httpStatus, String(Buffer.from(received))]).toEqual([status, expect.stringContaining(want)]);
  });

  // HEAD, OPTIONS and GET have no body, on which the response to a QUERY depends.
  test.each(["HEAD", "OPTIONS", "GET"])("is listed in Allow if %s gets status 405", async (httpMethod) => {
    const response = await send(transport, httpMethod, []);
    expect(response.httpStatus).toBe(405);
    expect(response.header).toContainEqual(["allow", "QUERY"]);
  });

  test("is allowed by CORS after a preflight", async () => {
    const header = Object.entries({ origin: shop, "access-control-request-method": "QUERY" });
    const response = await send(transport, "OPTIONS", header);
    expect(response.httpStatus).toBe(204);
    const allowed = response.header.find(([name]) => name === "access-control-allow-methods");
    expect(allowed?.[1].split(", ")).toContain("QUERY");
  });
});
