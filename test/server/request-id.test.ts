import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
} from "../../packages/gateway/src/gen/grpc/reflection/v1/reflection_pb.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { Field, HttpRequest } from "../../packages/testing/src/carriers/exchange.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { KeptConnections } from "../../packages/testing/src/gateway/kept-connections.ts";
import {
  type Carriage,
  carriages,
  carriagesOf,
  encodeMessage,
  exchange,
  rpcRequest,
} from "../../packages/testing/src/gateway/wire-format.ts";
import { deletePlantProcedure, deletePlantRequest } from "../support/plants/delete-plant.ts";
import { authorized, startPlantServer, type TestPlantServerOptions } from "../support/server/plant-server.ts";

const made = /^[0-9a-f]{16}-[0-9a-z]+$/;
const longest = "a".repeat(128);

interface Ids {
  /** Those in the header of the answer. */
  readonly answered: readonly string[];
  /** The one that the call is logged under. */
  readonly logged: unknown;
}

/** A server for many requests, one after another. */
interface LoggedServer extends AsyncDisposable {
  idsOf(carriage: Pick<Carriage, "httpVersion">, request: HttpRequest): Promise<Ids>;
}

/** Starts a server that has the plant 7 each time it is asked. */
async function startLogged(options: TestPlantServerOptions = {}): Promise<LoggedServer> {
  const { log, lines } = openLogLines("info");
  const calls = () => lines().filter(({ msg }) => msg === "call");
  const plants = new Set<bigint>();
  const server = await startPlantServer({ store: openMemoryStore(plants), log, ...options });
  const connections = new KeptConnections();
  return {
    async idsOf({ httpVersion }, request) {
      plants.add(7n);
      const before = calls().length;
      const { header } = await connections.exchange(server.address, httpVersion, request);
      await expect.poll(() => calls().length, { interval: 1 }).toBeGreaterThan(before);
      const answered = header.flatMap(([name, value]) => (name === "x-request-id" ? [value] : []));
      return { answered, logged: calls()[before]?.["requestId"] };
    },
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const sent: Field = ["x-request-id", "from-the-client"];
const taken = { answered: ["from-the-client"], logged: "from-the-client" };

describe("over every protocol and version of HTTP", () => {
  let server: LoggedServer;
  let always: LoggedServer;
  beforeAll(async () => {
    server = await startLogged();
    always = await startLogged({ requestIdAnswers: "always" });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await always[Symbol.asyncDispose]();
  });

  test.each(carriages)("the client's x-request-id is returned and logged, $name", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 7n, [authorized, sent]);
    expect(await server.idsOf(carriage, request)).toEqual(taken);
  });

  test.each(carriages)("the client's x-request-id is returned and logged with an error, $name", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 8n, [authorized, sent]);
    expect(await server.idsOf(carriage, request)).toEqual(taken);
  });

  test.each(carriages)("the client's x-request-id is returned and logged with a refusal, $name", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 7n, [sent]);
    expect(await server.idsOf(carriage, request)).toEqual(taken);
  });

  test.each(carriages)("an error has a generated x-request-id, $name", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 8n, [authorized]);
    const { answered, logged } = await server.idsOf(carriage, request);
    expect(answered).toEqual([expect.stringMatching(made)]);
    expect(logged).toBe(answered[0]);
  });

  test.each(carriages)(
    "a success has an x-request-id only if every response is to have one, $name",
    async (carriage) => {
      const request = deletePlantRequest(carriage.format, 7n, [authorized]);
      expect((await server.idsOf(carriage, request)).answered).toEqual([]);
      const { answered, logged } = await always.idsOf(carriage, request);
      expect(answered).toEqual([expect.stringMatching(made)]);
      expect(logged).toBe(answered[0]);
    },
  );

  test.each(carriages.filter(({ format }) => ["grpc", "grpc-web"].includes(format.name)))(
    "$name, every stream carries one, once",
    async (carriage) => {
      const message = encodeMessage(carriage.format, ServerReflectionRequestSchema, {
        messageRequest: { case: "listServices", value: "" },
      });
      const procedure = `/${ServerReflection.typeName}/ServerReflectionInfo`;
      for (const header of [[], [sent]]) {
        const request = rpcRequest(carriage.format, message, [authorized, ...header], procedure);
        const { answered, logged } = await server.idsOf(carriage, request);
        expect(answered).toEqual([logged]);
      }
    },
  );
});

const rest = carriagesOf("rest").map(({ httpVersion }) => ({ httpVersion }));

describe.each(rest)("over HTTP/$httpVersion", (carriage) => {
  let server: LoggedServer;
  beforeAll(async () => {
    server = await startLogged();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test.each([
    { name: "a UUID", id: "0190a6f2-3c5e-7b1a-9d2f-4e6a8b0c1d2e" },
    { name: "base64", id: "q83vEjRWeJA+/w==" },
    { name: "all other characters", id: "a._~:@Z9" },
    { name: "128 characters", id: longest },
  ])("$name is taken", async ({ id }) => {
    const request = { httpMethod: "GET", path: "/livez", header: [["x-request-id", id]] satisfies Field[] };
    expect(await server.idsOf(carriage, request)).toEqual({ answered: [id], logged: id });
  });

  test.each<{ name: string; header: readonly Field[] }>([
    { name: "129 characters", header: [["x-request-id", `${longest}a`]] },
    { name: "an empty one", header: [["x-request-id", ""]] },
    { name: "a space", header: [["x-request-id", "a b"]] },
    { name: "a quotation mark", header: [["x-request-id", 'a"b']] },
    { name: "a byte above ASCII", header: [["x-request-id", "\u00e9"]] },
    { name: "two", header: [sent, sent] },
  ])("$name is no id, and one is made", async ({ header }) => {
    const { answered, logged } = await server.idsOf(carriage, { httpMethod: "GET", path: "/livez", header });
    expect({ answered, logged }).toEqual({ answered: [], logged: expect.stringMatching(made) });
  });
});

test("pages of other origins may read it", async () => {
  await using server = await startPlantServer({ corsOrigins: "*" });
  const answer = await exchange(server.address, "1.1", {
    httpMethod: "DELETE",
    path: "/plants/1",
    header: [["origin", "https://shop.example"]],
  });
  const header = new Map(answer.header);
  expect(header.get("access-control-expose-headers")).toContain("X-Request-Id");
  expect([header.get("access-control-allow-origin"), header.get("x-request-id")]).toEqual([
    "*",
    expect.stringMatching(made),
  ]);
});

function verify(): never {
  throw new TypeError("no verifier");
}

test.each(carriages)("$name, a fault before the call is logged under the id that is answered", async (carriage) => {
  const { log, lines } = openLogLines("error");
  await using server = await startPlantServer({ auth: { verify }, log });
  const request = deletePlantRequest(carriage.format, 7n, [authorized]);
  const { header } = await exchange(server.address, carriage.httpVersion, request);
  const [, requestId] = header.find(([name]) => name === "x-request-id") ?? [];
  expect(requestId).toMatch(made);
  const [fault] = lines();
  expect(fault).toMatchObject({ requestId, procedure: deletePlantProcedure, err: { message: "no verifier" } });
});
