import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { fieldValue, type HttpRequest, KeptConnections, openLogLines, statelessRequest } from "@protoport/testing";
import { bearer, startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";

const tool = "plantstore_v1_PlantService_DeletePlant";
const log = openLogLines("info");
let server: TestPlantServer;
let connections: KeptConnections;

beforeAll(async () => {
  connections = new KeptConnections();
  server = await startPlantServer({
    store: openMemoryStore(new Set([1n, 2n, 3n])),
    tools: createPlantTools(),
    publicUrl: new URL("https://plants.example/"),
    corsOrigins: ["https://agents.example"],
    log: log.log,
  });
});

afterAll(async () => {
  connections[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

async function send(request: HttpRequest) {
  const { httpStatus, header, body } = await connections.exchange(server.address, "1.1", request);
  return { httpStatus, challenge: fieldValue(header, "www-authenticate"), body: JSON.parse(String(body)) };
}

const deletePlant = (id: unknown, token: string = tokens.good, meta: object = {}): HttpRequest =>
  statelessRequest("tools/call", { name: tool, arguments: { id }, _meta: meta }, [bearer(token)]);

const succeeded = (): object => ({ result: { structuredContent: {}, content: [{ type: "text", text: "{}" }] } });
const failed = (text: string): object => ({ result: { isError: true, content: [{ type: "text", text }] } });

describe("the tool DeletePlant", () => {
  test("is named in the OpenAPI document", async () => {
    const asked = { httpMethod: "GET", path: "/openapi.json", header: [bearer(tokens.good)], body: Buffer.of() };
    const { body } = await send(asked);
    expect(body).toMatchObject({ paths: { "/plants/{id}": { delete: { "x-rpc": { tool } } } } });
  });

  test("is destructive and idempotent, and has a string as id", async () => {
    const { body } = await send(statelessRequest("tools/list", {}, [bearer(tokens.good)]));
    expect(body["result"]).toMatchObject({
      // oxfmt-ignore
      tools: [
        {
          name: tool, title: "Delete Plant", description: expect.stringContaining("plant"),
          inputSchema: { type: "object", properties: { id: { type: "string" } }, additionalProperties: false },
          outputSchema: { type: "object" }, annotations: { destructiveHint: true, idempotentHint: true } },
      ],
      cacheScope: "private",
    });
  });

  test("is not listed for a caller without its scope", async () => {
    const { body } = await send(statelessRequest("tools/list", {}, [bearer(tokens.narrow)]));
    expect(body["result"]).toMatchObject({ tools: [], cacheScope: "private" });
  });

  test("reports success for a repeated call with the same idempotency key", async () => {
    const meta = { idempotencyKey: "8e03978e" };
    expect((await send(deletePlant("2", tokens.good, meta))).body).toMatchObject(succeeded());
    expect((await send(deletePlant("2", tokens.good, meta))).body).toMatchObject(succeeded());
    expect((await send(deletePlant("2"))).body).toMatchObject(failed("NOT_FOUND: plant 2 not found"));
  });

  test.each([
    { name: "without a token", token: "", httpStatus: 401, error: "" },
    { name: "with an expired token", token: tokens.expired, httpStatus: 401, error: ', error="invalid_token"' },
    { name: "without the scope", token: tokens.narrow, httpStatus: 403, error: ', error="insufficient_scope"' },
  ])("$name is refused with a challenge", async ({ token, httpStatus, error }) => {
    const response = await send(deletePlant("3", token));
    expect(response.httpStatus).toBe(httpStatus);
    expect(response.challenge).toContain(`Bearer realm="plantstore"${error}`);
    expect(response.challenge).toContain(
      'resource_metadata="https://plants.example/.well-known/oauth-protected-resource/mcp"',
    );
    expect(response.body).toMatchObject({ jsonrpc: "2.0", error: { code: -32600 } });
  });
});

describe("a CORS preflight request", () => {
  const preflight = [
    ["origin", "https://agents.example"],
    ["access-control-request-method", "POST"],
  ] as const;

  async function allowedHeaders({ address }: TestPlantServer): Promise<string> {
    const request = { httpMethod: "OPTIONS", path: "/mcp", header: preflight, body: Buffer.of() };
    const { header } = await connections.exchange(address, "1.1", request);
    return fieldValue(header, "access-control-allow-headers")?.toLowerCase() ?? "";
  }

  test("allows the header fields for tools only if there are tools, and always Idempotency-Key", async () => {
    const fields = /\bidempotency-key, ?mcp-protocol-version, ?mcp-method, ?mcp-name\b/;
    await using without = await startPlantServer({ corsOrigins: ["https://agents.example"] });
    expect(await allowedHeaders(server)).toMatch(fields);
    expect(await allowedHeaders(without)).toMatch(/^(?!.*mcp).*idempotency-key/);
  });
});
