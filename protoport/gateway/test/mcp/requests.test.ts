import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { createGateway } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { createTestGateway, fieldValue, type HttpVersion, KeptConnections, rowsFor, shared, startGreenhouse,
  statelessRequest, type TestListenOptions, waterBedProcedure } from "@protoport/testing";
import { call, calls, headerCases, messageCases, originCases, raw, readMaxBytes, watered } from "./cases.ts";

// Requests and responses on the wire, in both kinds of revisions.

type Server = { name: string; version: HttpVersion; listen: TestListenOptions; create: typeof createGateway };
const servers: readonly Server[] = [
  { name: "the engine on HTTP/1.1", version: "1.1", listen: {}, create: createTestGateway },
  { name: "the engine on HTTP/2", version: "2", listen: {}, create: createTestGateway },
  { name: "node:http", version: "1.1", listen: {}, create: createGateway },
  { name: "a handler in node:http2", version: "2", listen: { http2: "mounted" }, create: createGateway },
];

const ran: string[] = [];

async function waterBed(
  { bed, liters, note }: { bed: bigint; liters: number; note: string },
  { requestHeader }: HandlerContext,
): Promise<{ bed: bigint; liters: number; note: string }> {
  ran.push("handler");
  if (note === "dry") throw new ConnectError("dry", Code.Aborted, { "retry-after": "7" });
  if (note === "credential") throw new ConnectError("log in", Code.Unauthenticated, { "www-authenticate": "Basic" });
  if (note === "upstream") throw new ConnectError("log in", Code.Unauthenticated);
  if (note === "late") return new Promise(() => {});
  return { bed, liters, note: note === "key" ? (requestHeader.get("idempotency-key") ?? "") : note };
}

beforeEach(() => {
  ran.length = 0;
});

describe.each(servers)("MCP over $name", (server) => {
  const { version: httpVersion, listen, create } = server;
  const connections = shared(() => new KeptConnections());
  const greenhouse = shared(() =>
    startGreenhouse(
      { waterBed },
      {
        readMaxBytes,
        cors: { origins: ["https://shop.example"] },
        mcp: createMcp({ tools: ["greenhouse.v1.GreenhouseService.WaterBed"] }),
        admit: ({ procedure, protocol, authorization }) => {
          ran.push(`admit ${procedure} ${protocol}`);
          if (authorization !== null)
            throw new ConnectError("who are you", Code.Unauthenticated, { "www-authenticate": "Bearer" });
        },
        interceptors: [
          (next) => (request) => {
            const { service, method, message, stream } = request;
            ran.push(`scope /${service.typeName}/${method.name}`);
            if (!stream && "note" in message && message.note === "scope") {
              const challenge = { "www-authenticate": 'Bearer error="insufficient_scope"' };
              throw new ConnectError("the scope is missing", Code.PermissionDenied, challenge);
            }
            return next(request);
          },
        ],
      },
      listen,
      create,
    ),
  );

  test.each(rowsFor(server, servers, [...calls, ...messageCases, ...headerCases, ...originCases]))(
    "sends the expected response to $name",
    async ({ request, httpStatus = 200, response, procedure, header = [] }) => {
      const before = greenhouse.completedRequests.length;
      const actual = await connections.exchange(greenhouse.address, httpVersion, request);
      const body = String(actual.body);
      const want = { httpStatus, response };
      expect({ httpStatus: actual.httpStatus, response: body === "" ? undefined : JSON.parse(body) }).toEqual(want);
      expect(fieldValue(actual.header, "content-type")).toBe(response === undefined ? undefined : "application/json");
      for (const [name, value] of header) expect(fieldValue(actual.header, name)).toBe(value);
      const reported = await greenhouse.completed(before + 1);
      expect(reported).toMatchObject({ procedure, protocol: "mcp", httpRoute: "/mcp", httpStatus });
      expect(greenhouse.completedRequests).toHaveLength(before + 1);
    },
  );

  test("calls admit without a procedure, and interceptors with the tool's procedure", async () => {
    await connections.exchange(greenhouse.address, httpVersion, call(watered));
    expect(ran).toEqual(["admit undefined mcp", `scope ${waterBedProcedure}`, "handler"]);
  });

  test.each(["GET", "DELETE"])("refuses %s with 405 and Allow: POST", async (httpMethod) => {
    const request = { ...statelessRequest("server/discover"), httpMethod, body: Buffer.of() };
    const response = await connections.exchange(greenhouse.address, httpVersion, request);
    expect([response.httpStatus, fieldValue(response.header, "allow")]).toEqual([405, "POST"]);
  });

  test("returns an id above 2^53 unchanged", async () => {
    const ping = raw('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}');
    const response = await connections.exchange(greenhouse.address, httpVersion, ping);
    expect(String(response.body)).toBe('{"jsonrpc":"2.0","id":9007199254740993,"result":{}}');
  });
});
