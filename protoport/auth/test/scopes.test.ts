import { Code, createContextValues } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { CompletedRequest, GatewayOptions } from "../../gateway/src/index.ts";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { within } from "@protoport/testing/process";
import { encodeEnvelope } from "../../testing/src/gateway/envelope.ts";
import { type Field, fieldValue, type HttpRequest } from "@protoport/testing/http";
import { type EveryTransport, openEveryTransport } from "../../testing/src/gateway/every-transport.ts";
import { waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { statelessRequest, toolNameOf } from "../../testing/src/gateway/mcp.ts";
import { rpcRequest, wireFormats } from "../../testing/src/gateway/wire-format.ts";
import { type BearerAuth, createBearerAuth } from "../src/bearer-auth.ts";
import { limitRates } from "../src/rate-limit.ts";
import type { TokenOutcome, TokenVerifier } from "../src/token-verifier.ts";

const watchProcedure = "/greenhouse.v1.GreenhouseService/WatchReadings";
const scope = "beds.water";
const challenge = `Bearer realm="greenhouse", error="insufficient_scope", error_description="the token lacks the scope beds.water", scope="beds.water"`;

/** Returns a verifier that counts its calls. A token's text is its scope. */
function countingVerifier(isAsync: boolean): TokenVerifier & { readonly calls: number } {
  let calls = 0;
  return {
    verify: ({ text }) => {
      calls += 1;
      const outcome: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: new Set([text]) };
      return isAsync ? Promise.resolve(outcome) : outcome;
    },
    get calls() {
      return calls;
    },
  };
}

type Check = (auth: BearerAuth) => Partial<GatewayOptions>;

const checks: Readonly<Record<string, Check>> = {
  admit: ({ admit }) => ({ admit }),
  "the interceptor": ({ interceptor }) => ({ interceptors: [interceptor] }),
  "admit with a limit per address": ({ admit }) => ({ admit: limitRates(admit, { perAddress: 1000 }) }),
  "admit with a limit per principal": ({ admit }) => ({ admit: limitRates(admit, { perPrincipal: 1000 }) }),
};

const callTool = (procedure: string): HttpRequest =>
  statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: {} });

// oxfmt-ignore
const calls: readonly { readonly name: string; readonly request: HttpRequest; readonly refusedStatus?: number }[] = [
  { name: "REST", request: { httpMethod: "POST", path: "/beds/7:water", header: [] } },
  { name: "Connect", request: rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure) },
  { name: "gRPC-Web", request: rpcRequest(wireFormats["grpc-web"], Buffer.alloc(0), [], waterBedProcedure),
    refusedStatus: 200 },
  { name: "gRPC", request: rpcRequest(wireFormats.grpc, Buffer.alloc(0), [], waterBedProcedure), refusedStatus: 200 },
  { name: "Connect streaming",
    request: { httpMethod: "POST", path: watchProcedure, header: [["content-type", "application/connect+proto"]],
      body: encodeEnvelope(0, Buffer.alloc(0)) }, refusedStatus: 200 },
  { name: "MCP", request: callTool(waterBedProcedure) },
  { name: "MCP streaming", request: callTool(watchProcedure) },
];

function withToken(request: HttpRequest, text: string): HttpRequest {
  const credential: Field = ["authorization", `Bearer ${text}`];
  return { ...request, header: [...request.header, credential] };
}

describe.each(
  Object.entries(checks).flatMap(([checked, check]) =>
    [false, true].map((isAsync) => ({ checked, check, isAsync, how: isAsync ? "an asynchronous" : "a synchronous" })),
  ),
)("scope checks in $checked, with $how verifier", ({ check, isAsync }) => {
  const verifier = countingVerifier(isAsync);
  const handled: string[] = [];
  const completed: CompletedRequest[] = [];
  let gateway: EveryTransport;

  beforeAll(async () => {
    const auth = createBearerAuth(verifier, { realm: "greenhouse", requiredScope: () => scope });
    gateway = await openEveryTransport({
      routes: (router) =>
        router.service(GreenhouseService, {
          waterBed: () => (handled.push("WaterBed"), {}),
          async *watchReadings() {
            handled.push("WatchReadings");
            yield {};
          },
        }),
      mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
      ...check(auth),
      onResponse: (one) => void completed.push(one),
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test.each(calls)("$name calls fail if their token lacks the scope", async ({ request, refusedStatus = 403 }) => {
    for (const transport of ["the engine's HTTP/2", "a handler in node:http2"] as const) {
      const callsBefore = verifier.calls;
      completed.length = 0;
      const refused = await within(gateway.ask(transport, withToken(request, "beds.read")), "the refusal");
      expect(refused.httpStatus).toBe(refusedStatus);
      expect(fieldValue(refused.header, "www-authenticate") ?? challenge).toBe(challenge);
      await expect.poll(() => completed).toHaveLength(1);
      expect(completed[0]?.error?.code).toBe(Code.PermissionDenied);
      expect(completed[0]?.error?.metadata.get("www-authenticate")).toBe(challenge);
      expect(handled).toEqual([]);
      expect((await within(gateway.ask(transport, withToken(request, scope)), "the response")).httpStatus).toBe(200);
      expect(handled.splice(0)).toHaveLength(1);
      expect(verifier.calls).toBe(callsBefore + 2);
    }
  });
});

test.each([
  { initialScopes: [], scopes: "" },
  { initialScopes: ["a", "b"], scopes: ', scope="a b"' },
])("initialScopes $initialScopes add '$scopes' to the challenge", ({ initialScopes, scopes }) => {
  const { admit } = createBearerAuth(countingVerifier(false), { realm: "greenhouse", initialScopes });
  const request = { procedure: undefined, authorization: null, connection: {}, contextValues: createContextValues() };
  expect(() => admit(request)).toThrow(
    expect.objectContaining({ metadata: new Headers({ "www-authenticate": `Bearer realm="greenhouse"${scopes}` }) }),
  );
});

describe("admit's scope check", () => {
  const request = { procedure: undefined, authorization: "Bearer beds.read", connection: {} };
  const options = { realm: "greenhouse", requiredScope: () => scope, open: ["greenhouse.v1.Open"] };
  const contextValues = createContextValues();

  test("does not require a scope for an open procedure", async () => {
    const check = createBearerAuth(countingVerifier(false), options).admit({ ...request, contextValues });
    if (typeof check !== "function") throw new Error("expected a function");
    expect(() => check("/greenhouse.v1.Open/Get")).not.toThrow();
    expect(() => check(waterBedProcedure)).toThrow("the token lacks the scope beds.water");
  });
});

test("limitRates counts a tool call once", async () => {
  const auth = createBearerAuth(countingVerifier(false), { realm: "greenhouse", requiredScope: () => scope });
  for (const rates of [{ perAddress: 2 }, { perPrincipal: 2 }]) {
    await using gateway = await openEveryTransport({
      routes: (router) => router.service(GreenhouseService, { waterBed: () => ({}) }),
      mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
      admit: limitRates(auth.admit, rates),
    });
    const statuses: number[] = [];
    for (const token of ["beds.read", scope, scope])
      statuses.push(
        (await gateway.ask("a handler in node:http", withToken(callTool(waterBedProcedure), token))).httpStatus,
      );
    expect(statuses).toEqual([403, 200, 429]);
  }
});
