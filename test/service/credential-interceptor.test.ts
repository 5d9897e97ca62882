import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createGateway } from "@protoport/gateway";
import { Readiness } from "@protoport/gateway/health";
import { createMcp } from "@protoport/gateway/mcp";
import type { TokenVerifier } from "@protoport/auth";
import { silentLog } from "@protoport/telemetry/logs";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { type DeleteCall, createPlantGatewayOptions } from "../../src/service/index.ts";
import { exchangeHttp1, listenForTests, openLogLines, statelessRequest, toolNameOf } from "@protoport/testing";
import { recordCalls } from "../support/plants/recorded-calls.ts";
import { authorized, startPlantServer, testVerifier, tokens } from "../support/server/plant-server.ts";

// test/contract/hostile-credentials.test.ts covers the credentials that the interceptor refuses, over every protocol.

function countingVerifier(isAsync: boolean): TokenVerifier & { readonly calls: number } {
  let calls = 0;
  return {
    verify: (token) => {
      calls += 1;
      const outcome = testVerifier.verify(token);
      return isAsync ? Promise.resolve(outcome) : outcome;
    },
    get calls() {
      return calls;
    },
  };
}

test.each([false, true])("a Connect server's handler gets the principal (async verifier: %s)", async (isAsync) => {
  const calls: DeleteCall[] = [];
  const store = recordCalls(new Set([1n]), calls);
  const options = { store, verifier: countingVerifier(isAsync), readiness: new Readiness({}), log: silentLog };
  const { routes, interceptors } = createPlantGatewayOptions(options);
  const transport = createRouterTransport(routes, { router: { interceptors: [...interceptors] } });
  const headers = { authorization: `Bearer ${tokens.good}` };
  await createClient(PlantService, transport).deletePlant({ id: 1n }, { headers });
  expect(calls).toMatchObject([{ subject: "alice" }]);
});

test.each([false, true])("the gateway verifies a token once per call (async verifier: %s)", async (isAsync) => {
  const verifier = countingVerifier(isAsync);
  await using server = await startPlantServer({ verifier, store: openMemoryStore(new Set([1n])) });
  const request = { httpMethod: "DELETE", path: "/plants/1", header: [authorized] };
  expect(await exchangeHttp1(server.address, request)).toMatchObject({ httpStatus: 204 });
  expect(verifier.calls).toBe(1);
});

test("the interceptor refuses a principal that loses its scope after admit", async () => {
  let checks = 0;
  const scopes = new Set(["plants:delete"]);
  // `admit` checks the scope first, the interceptor second.
  scopes.has = () => (checks += 1) === 1;
  const principal = { kind: "principal", subject: "alice", issuer: undefined, scopes } as const;
  const plants = new Set([1n]);
  const options = { verifier: { verify: () => principal }, store: openMemoryStore(plants) };
  await using server = await startPlantServer(options);
  const request = { httpMethod: "DELETE", path: "/plants/1", header: [authorized] };
  const response = await exchangeHttp1(server.address, request);
  const want = { httpStatus: 400, body: { error: 7, message: "the token lacks the scope plants:delete" } };
  expect({ httpStatus: response.httpStatus, body: JSON.parse(response.body.toString()) }).toEqual(want);
  expect([...plants]).toEqual([1n]);
});

// In MCP, the body names the RPC.
// oxfmt-ignore
const toolCalls = [
  { name: "deletes the plant when the token has the scope", token: tokens.good, httpStatus: 200,
    response: { id: 1, result: { structuredContent: {} } }, remaining: [] },
  { name: "is refused when the token lacks the scope", token: tokens.narrow, httpStatus: 403,
    response: { id: 1, error: { message: "the token lacks the scope plants:delete" } }, remaining: [1n] },
  { name: "is refused before its body is read when the token is unknown", token: tokens.unknown, httpStatus: 401,
    response: { error: { message: "the token is not valid" } }, remaining: [1n], guards: ["both", "admit"] },
];

const guarded = toolCalls.flatMap(({ guards = ["both", "admit", "interceptors"], ...row }) =>
  guards.map((guard) => ({ ...row, guard })),
);

test.each(guarded)(
  "a tool call $name (checked by $guard)",
  async ({ token, guard, remaining, httpStatus, response: wanted }) => {
    const plants = new Set([1n]);
    const store = openMemoryStore(plants);
    const settings = { store, verifier: testVerifier, readiness: new Readiness({}), log: silentLog };
    const { admit, interceptors, ...options } = createPlantGatewayOptions(settings);
    const gateway = createGateway({
      ...options,
      mcp: createMcp({ tools: ["plantstore.v1.PlantService.DeletePlant"] }),
      ...(guard !== "interceptors" && { admit }),
      ...(guard !== "admit" && { interceptors }),
    });
    await using listening = await listenForTests(gateway);
    const params = { name: toolNameOf("/plantstore.v1.PlantService/DeletePlant"), arguments: { id: "1" } };
    const header = [["authorization", `Bearer ${token}`]] as const;
    const response = await exchangeHttp1(listening.address, statelessRequest("tools/call", params, header));
    expect(response.httpStatus).toBe(httpStatus);
    expect(JSON.parse(String(response.body))).toMatchObject(wanted);
    expect([...plants]).toEqual(remaining);
  },
);

test("the gateway options limit messages, ignore unknown fields, and name no options in errors", () => {
  const parts = { store: openMemoryStore(), verifier: testVerifier, readiness: new Readiness({}), log: silentLog };
  const want = { readMaxBytes: 65_536, binaryOptions: { readUnknownFields: false }, nameOptions: false };
  expect(createPlantGatewayOptions(parts)).toMatchObject(want);
});

test("the error interceptor hides a verifier's error, and logs it once", async () => {
  const { log, lines } = openLogLines("info");
  const { routes, interceptors } = createPlantGatewayOptions({
    store: openMemoryStore(new Set([1n])),
    verifier: {
      verify: () => {
        throw new Error("ECONNREFUSED 10.0.0.7");
      },
    },
    readiness: new Readiness({}),
    log,
  });
  const transport = createRouterTransport(routes, { router: { interceptors: [...interceptors] } });
  const headers = { authorization: `Bearer ${tokens.good}` };
  const call = createClient(PlantService, transport).deletePlant({ id: 1n }, { headers });
  await expect(call).rejects.toMatchObject({ rawMessage: "internal error" });
  expect(lines()).toHaveLength(1);
});
