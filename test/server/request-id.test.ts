import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
} from "@protoport/gateway/gen/grpc/reflection/v1/reflection_pb.js";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
// oxfmt-ignore
import { encodeMessage, exchange, type Field, type HttpRequest, KeptConnections, openLogLines, rpcRequest, type Wire,
  wires, wiresOf, wiresWithTools } from "@protoport/testing";
import { deletePlantProcedure, deletePlantRequest } from "../support/plants/delete-plant.ts";
import { authorized, startPlantServer, type TestPlantServerOptions } from "../support/server/plant-server.ts";

const generatedId = /^[0-9a-f]{16}-[0-9a-z]+$/;

interface Ids {
  /** The ids in the response header. */
  readonly returned: readonly string[];
  /** The id in the call's log line. */
  readonly logged: unknown;
}

interface LoggedServer extends AsyncDisposable {
  idsOf(wire: Pick<Wire, "httpVersion">, request: HttpRequest): Promise<Ids>;
}

/** Starts a server that has plant 7 before each request. */
async function startLogged(options: TestPlantServerOptions = {}): Promise<LoggedServer> {
  const { log, lines } = openLogLines("info");
  const calls = () => lines().filter(({ msg }) => msg === "call");
  const plants = new Set<bigint>();
  const server = await startPlantServer({ store: openMemoryStore(plants), tools: createPlantTools(), log, ...options });
  const connections = new KeptConnections();
  return {
    async idsOf({ httpVersion }, request) {
      plants.add(7n);
      const before = calls().length;
      const { header } = await connections.exchange(server.address, httpVersion, request);
      await expect.poll(() => calls().length, { interval: 1 }).toBeGreaterThan(before);
      const returned = header.flatMap(([name, value]) => (name === "x-request-id" ? [value] : []));
      return { returned, logged: calls()[before]?.["requestId"] };
    },
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const sent: Field = ["x-request-id", "from-the-client"];
const accepted = { returned: ["from-the-client"], logged: "from-the-client" };

describe("x-request-id", () => {
  let server: LoggedServer;
  let always: LoggedServer;
  beforeAll(async () => {
    server = await startLogged();
    always = await startLogged({ requestIdResponses: "always" });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await always[Symbol.asyncDispose]();
  });

  test.each(wiresWithTools)("is returned and logged over $name for a success, an error and a refusal", async (wire) => {
    for (const [id, ...credentials] of [[7n, authorized], [8n, authorized], [7n]] as const) {
      expect(await server.idsOf(wire, deletePlantRequest(wire.format, id, [...credentials, sent]))).toEqual(accepted);
    }
  });

  test.each(wiresWithTools)(
    "is generated over $name for an error, or for a success if requested always",
    async (wire) => {
      const ask = (to: LoggedServer, id: bigint) => to.idsOf(wire, deletePlantRequest(wire.format, id, [authorized]));
      expect((await ask(server, 7n)).returned).toEqual([]);
      for (const { returned, logged } of [await ask(server, 8n), await ask(always, 7n)]) {
        expect(returned).toEqual([expect.stringMatching(generatedId)]);
        expect(logged).toBe(returned[0]);
      }
    },
  );

  // protoport/telemetry/test/logs/request-id.test.ts covers the spellings.
  test.each<{ name: string; header: readonly Field[] }>([
    { name: "more than 128 characters", header: [["x-request-id", "a".repeat(129)]] },
    { name: "a byte above ASCII", header: [["x-request-id", "\u00e9"]] },
    { name: "two values", header: [sent, sent] },
  ])("with $name is replaced as invalid", async ({ header }) => {
    for (const wire of wiresOf("rest")) {
      const { returned, logged } = await server.idsOf(wire, { httpMethod: "GET", path: "/livez", header });
      expect({ returned, logged }).toEqual({ returned: [], logged: expect.stringMatching(generatedId) });
    }
  });

  test.each(wiresOf("grpc", "grpc-web"))("is sent over $name once per stream", async (wire) => {
    const messageRequest = { case: "listServices", value: "" } as const;
    const message = encodeMessage(wire.format, ServerReflectionRequestSchema, { messageRequest });
    const procedure = `/${ServerReflection.typeName}/ServerReflectionInfo`;
    for (const header of [[], [sent]]) {
      const request = rpcRequest(wire.format, message, [authorized, ...header], procedure);
      const { returned, logged } = await server.idsOf(wire, request);
      expect(returned).toEqual([logged]);
    }
  });
});

test("CORS exposes x-request-id and rate limits to pages from other origins", async () => {
  await using server = await startPlantServer({ corsOrigins: "*" });
  const response = await exchange(server.address, "1.1", {
    httpMethod: "DELETE",
    path: "/plants/1",
    header: [["origin", "https://shop.example"]],
  });
  const header = new Map(response.header);
  expect(header.get("access-control-expose-headers")).toContain("X-Request-Id, RateLimit, RateLimit-Policy");
  const want = ["*", expect.stringMatching(generatedId)];
  expect([header.get("access-control-allow-origin"), header.get("x-request-id")]).toEqual(want);
});

function verify(): never {
  throw new TypeError("no verifier");
}

// Excludes tools, because the verifier runs before the body names a tool call's RPC.
test.each(wires)("a verifier error over $name is logged with the response's id", async (wire) => {
  const { log, lines } = openLogLines("error");
  await using server = await startPlantServer({ verifier: { verify }, log });
  const request = deletePlantRequest(wire.format, 7n, [authorized]);
  const { header } = await exchange(server.address, wire.httpVersion, request);
  const [, requestId] = header.find(([name]) => name === "x-request-id") ?? [];
  expect(requestId).toMatch(generatedId);
  const [line] = lines();
  expect(line).toMatchObject({ requestId, procedure: deletePlantProcedure, err: { message: "no verifier" } });
});
