import { describe, expect, test } from "vitest";
import { ServerReflection, ServerReflectionRequestSchema } from "../../src/gen/es/grpc/reflection/v1/reflection_pb.ts";
import { openMemoryStore } from "../../src/plants/index.ts";
import type { Field, HttpRequest } from "../support/carriers/exchange.ts";
import { openLogLines } from "../support/operations/log-lines.ts";
import { type Carriage, carriages, carriagesOf } from "../support/gateway/wire-format.ts";
import { deletePlantRequest, encodeMessage, exchange, rpcRequest } from "../support/gateway/wire-format.ts";
import {
  authorized,
  http2Engines,
  startPlantServer,
  type TestPlantServerOptions,
} from "../support/server/plant-server.ts";

const made = /^[0-9a-f]{16}-[0-9a-z]+$/;
const longest = "a".repeat(128);

/** The ids in the header of the answer, and the id that the call is logged under. */
async function idsOf(
  { httpVersion }: Pick<Carriage, "httpVersion">,
  request: HttpRequest,
  options: TestPlantServerOptions = {},
): Promise<{ readonly answered: readonly string[]; readonly logged: unknown }> {
  const { log, lines } = openLogLines("info");
  await using server = await startPlantServer({ store: openMemoryStore(new Set([7n])), log, ...options });
  const { header } = await exchange(server.address, httpVersion, request);
  await expect.poll(() => lines().find(({ msg }) => msg === "call")).toBeDefined();
  const answered = header.flatMap(([name, value]) => (name === "x-request-id" ? [value] : []));
  return { answered, logged: lines().find(({ msg }) => msg === "call")?.["requestId"] };
}

const sent: Field = ["x-request-id", "from-the-client"];
const taken = { answered: ["from-the-client"], logged: "from-the-client" };

describe.each(http2Engines)("with %s for HTTP/2", (http2) => {
  // HTTP/1.1 is served by the same, whatever serves HTTP/2.
  const served = carriages.filter(({ httpVersion }) => http2 === "own" || httpVersion === "2");

  test.each(served)("$name, the id of the client is answered and logged", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 7n, [authorized, sent]);
    expect(await idsOf(carriage, request, { http2 })).toEqual(taken);
  });

  test.each(served)("$name, so it is with an error", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 8n, [authorized, sent]);
    expect(await idsOf(carriage, request, { http2 })).toEqual(taken);
  });

  test.each(served)("$name, and with a refusal", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 7n, [sent]);
    expect(await idsOf(carriage, request, { http2 })).toEqual(taken);
  });

  test.each(served)("$name, an error carries an id that was made", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 8n, [authorized]);
    const { answered, logged } = await idsOf(carriage, request, { http2 });
    expect(answered).toEqual([expect.stringMatching(made)]);
    expect(logged).toBe(answered[0]);
  });

  test.each(served)("$name, a success carries one only where every answer is to", async (carriage) => {
    const request = deletePlantRequest(carriage.format, 7n, [authorized]);
    expect((await idsOf(carriage, request, { http2 })).answered).toEqual([]);
    const { answered, logged } = await idsOf(carriage, request, { http2, requestIdAnswers: "always" });
    expect(answered).toEqual([expect.stringMatching(made)]);
    expect(logged).toBe(answered[0]);
  });

  test.each(served.filter(({ format }) => ["grpc", "grpc-web"].includes(format.name)))(
    "$name, every stream carries one, once",
    async (carriage) => {
      const message = encodeMessage(carriage.format, ServerReflectionRequestSchema, {
        messageRequest: { case: "listServices", value: "" },
      });
      const procedure = `/${ServerReflection.typeName}/ServerReflectionInfo`;
      for (const header of [[], [sent]]) {
        const request = rpcRequest(carriage.format, message, [authorized, ...header], procedure);
        const { answered, logged } = await idsOf(carriage, request, { http2 });
        expect(answered).toEqual([logged]);
      }
    },
  );
});

const rest = carriagesOf("rest").map(({ httpVersion }) => ({ httpVersion }));

describe.each(rest)("over HTTP/$httpVersion", (carriage) => {
  test.each([
    { name: "a UUID", id: "0190a6f2-3c5e-7b1a-9d2f-4e6a8b0c1d2e" },
    { name: "base64", id: "q83vEjRWeJA+/w==" },
    { name: "all other characters", id: "a._~:@Z9" },
    { name: "128 characters", id: longest },
  ])("$name is taken", async ({ id }) => {
    const { httpVersion } = carriage;
    const request = { httpMethod: "GET", path: "/livez", header: [["x-request-id", id]] satisfies Field[] };
    expect(await idsOf({ httpVersion }, request)).toEqual({ answered: [id], logged: id });
  });

  test.each<{ name: string; header: readonly Field[] }>([
    { name: "129 characters", header: [["x-request-id", `${longest}a`]] },
    { name: "an empty one", header: [["x-request-id", ""]] },
    { name: "a space", header: [["x-request-id", "a b"]] },
    { name: "a quotation mark", header: [["x-request-id", 'a"b']] },
    { name: "a byte above ASCII", header: [["x-request-id", "\u00e9"]] },
    { name: "two", header: [sent, sent] },
  ])("$name is no id, and one is made", async ({ header }) => {
    const { answered, logged } = await idsOf(carriage, { httpMethod: "GET", path: "/livez", header });
    expect({ answered, logged }).toEqual({ answered: [], logged: expect.stringMatching(made) });
  });
});

test("pages of other origins may read it", async () => {
  await using server = await startPlantServer({ cors: { origins: "*" } });
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
