import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type UnaryRequest } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTokenVerifier, toStaticToken, type TokenVerifier } from "@protoport/auth";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import type { CallAudit } from "@protoport/telemetry/logs";
import { problem as gatewayProblem } from "@protoport/gateway/errors";
import { auditOf, rememberPlantId } from "../../src/server/create-plant-server.ts";
import { outcomeUnknown, plantProtected, queueFull, storeUnavailable } from "../../src/service/index.ts";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { bearer, startConfigured, startPlantServer } from "../support/server/index.ts";
// oxfmt-ignore
import { createSigningKey, type HttpResponse, type IdentityProvider, KeptConnections, openLogLines, quietLog,
  startIdentityProvider, testAudience, wiresWithTools } from "@protoport/testing";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";

const ciToken = "ci-token-0123456789";
// This id cannot be represented exactly as a JSON number.
const plant = 2n ** 53n + 1n;

let provider: IdentityProvider;
let verifier: TokenVerifier;

beforeAll(async () => {
  provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const jwt = [{ issuer: provider.issuer, audiences: [testAudience], enforceScopes: true }];
  const opened = await openTokenVerifier({ tokens: [toStaticToken("ci", ciToken)], jwt }, quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  verifier = opened.value;
});

afterAll(() => {
  verifier.close?.();
  provider.stop();
});

interface TestCase {
  readonly name: string;
  readonly token: () => string | Promise<string>;
  /** The existing plants; by default the requested one. */
  readonly plants?: readonly bigint[];
  readonly want: () => object;
}

// oxfmt-ignore
const testCases: readonly TestCase[] = [
  { name: "a delete with a plain token", token: () => ciToken,
    want: () => ({ code: "OK", subject: "ci", plantId: String(plant) }) },
  { name: "a delete with a JWT", token: () => provider.sign({ scope: "plants:delete" }),
    want: () => ({ code: "OK", subject: "ada", issuer: provider.issuer, plantId: String(plant) }) },
  { name: "a delete of an unknown plant", token: () => ciToken, plants: [],
    want: () => ({ code: "NotFound", subject: "ci", plantId: String(plant) }) },
  { name: "a delete with a token without the scope", token: () => provider.sign(), want: () => ({
      code: "PermissionDenied", subject: "ada", issuer: provider.issuer, refusal: "insufficient-scope",
      reason: "the token lacks the scope plants:delete" }) },
  { name: "a delete with a token for another audience", token: () => provider.sign({ aud: "https://other.example" }),
    want: () => ({ code: "Unauthenticated", refusal: "invalid", reason: 'unexpected "aud" claim value' }) },
  { name: "a delete with a malformed token", token: () => "!", want: () => ({
      code: "Unauthenticated", refusal: "malformed", reason: "the Authorization header is not a single bearer token",
    }) },
];

const auditFields = new Set(["subject", "issuer", "refusal", "reason", "plantId", "code"]);

describe("the audit line", () => {
  const calls = testCases.flatMap((testCase, i) =>
    wiresWithTools.map((wire, j) => ({ testCase, wire, requestId: `${i}-${j}` })),
  );
  const responses = new Map<string, { readonly token: string; readonly response: HttpResponse }>();
  const log = openLogLines("trace");

  // Calls share one server, because its log is complete only after it has closed.
  beforeAll(async () => {
    const plants = new Set<bigint>();
    const options = { verifier, store: openMemoryStore(plants), tools: createPlantTools(), log: log.log };
    await using server = await startPlantServer(options);
    using connections = new KeptConnections();
    for (const { testCase, wire, requestId } of calls) {
      plants.clear();
      for (const id of testCase.plants ?? [plant]) plants.add(id);
      const token = await testCase.token();
      const request = deletePlantRequest(wire.format, plant, [bearer(token), ["x-request-id", requestId]]);
      const response = await connections.exchange(server.address, wire.httpVersion, request);
      responses.set(requestId, { token, response });
    }
  });

  test.each(calls)("for $testCase.name over $wire.name has all fields except the token", ({ testCase, requestId }) => {
    const { token = "", response } = responses.get(requestId) ?? {};
    const lines = log.lines().filter((line) => line["msg"] === "call" && line["requestId"] === requestId);
    expect(lines).toHaveLength(1);
    const found = Object.fromEntries(Object.entries(lines[0] ?? {}).filter(([name]) => auditFields.has(name)));
    expect(found).toEqual(testCase.want());
    expect(lines[0]).toMatchObject({ time: expect.any(String), peer: "127.0.0.1", httpStatus: response?.httpStatus });
    if (token !== "!") expect(log.text()).not.toContain(token);
  });

  test("is written exactly once for each call", () =>
    expect(log.lines().filter(({ msg }) => msg === "call")).toHaveLength(calls.length));
});

describe("the audit line for a failed call", () => {
  test.each(
    // oxfmt-ignore
    [
      { name: "the reason of an unavailable store", error: storeUnavailable("the disk is full"),
        problem: "the disk is full" },
      { name: "the database's error", error: outcomeUnknown(new Error("broken pipe")), problem: "broken pipe" },
      { name: "a trigger's message", error: plantProtected(1n, new Error("on loan")), problem: "on loan" },
      { name: "the first 512 characters of a long message", error: storeUnavailable("é".repeat(513)),
        problem: "é".repeat(512) },
    ],
  )('contains $name in the field "problem"', ({ error, problem }) => {
    const { fields } = auditOf({ procedure: undefined, contextValues: createContextValues(), error });
    expect(fields).toEqual({ problem });
  });

  test.each([
    { name: "an error without a cause", error: queueFull() },
    {
      name: "a cancelled call",
      error: new ConnectError("canceled", Code.Canceled, undefined, undefined, new Error("aborted")),
    },
    {
      name: "an invalid message",
      error: gatewayProblem("ERR_MESSAGE_INVALID", "the message is not valid", { cause: new Error("premature EOF") }),
    },
    { name: "an unavailable store without details", error: storeUnavailable() },
  ])('for $name omits the field "problem"', ({ error }) => {
    const { fields } = auditOf({ procedure: undefined, contextValues: createContextValues(), error });
    expect(fields).toEqual({});
  });
});

/** The audit trail for each RPC's calls that name a plant. An RPC without an entry does not compile. */
const trails: Readonly<Record<keyof typeof PlantService.method, CallAudit["trail"]>> = {
  deletePlant: "deletions",
};
const trailOf = new Map(Object.entries(trails));

test.each([
  ...PlantService.methods.flatMap(({ name: rpc, localName }) =>
    [plant, 0n, -1n].map((id) => ({ rpc, id, trail: trailOf.get(localName) })),
  ),
  { rpc: "UnknownRpc", id: plant, trail: undefined },
])("auditOf returns the trail $trail for a $rpc call with the id $id", async ({ rpc, id, trail }) => {
  const contextValues = createContextValues();
  // oxfmt-ignore
  const request: UnaryRequest = {
    service: PlantService, method: PlantService.method.deletePlant, stream: false,
    message: create(PlantService.method.deletePlant.input, { id }), contextValues, header: new Headers(),
    requestMethod: "POST", url: "", signal: new AbortController().signal };
  await expect(rememberPlantId(() => Promise.reject(new Error("no response")))(request)).rejects.toThrow("no response");
  const call = { procedure: `/${PlantService.typeName}/${rpc}`, contextValues, error: undefined };
  expect(auditOf(call)).toEqual({ trail, fields: { plantId: String(id) } });
});

interface TrailTestCase {
  readonly name: string;
  readonly level: string;
  readonly audit: string;
  readonly want: readonly (readonly [path: string, httpStatus: number])[];
}

const refused = ["/plants/1", 400] as const;
const deleted = ["/plants/2", 204] as const;
const unreadable = ["/plantstore.v1.PlantService/DeletePlant", 400] as const;
const nothing = ["/nothing", 404] as const;

/** Returns the lines that a server logs for a refused call, a deletion, and two requests that do not name a plant. */
async function callLinesOf(environment: Readonly<Record<string, string>>): Promise<unknown[]> {
  const server = await startConfigured({ PLANTSTORE_TOKENS: ciToken, ...environment });
  const request = async (method: string, path: string, token: string): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    await (await fetch(`http://127.0.0.1:${server.port}${path}`, { method, headers })).body?.cancel();
  };
  await request("DELETE", "/plants/1", "wrong");
  await request("DELETE", "/plants/2", ciToken);
  await request("POST", unreadable[0], ciToken);
  await request("GET", "/nothing", ciToken);
  await server.drain();
  const calls = server.lines().filter(({ msg }) => msg === "call");
  return calls.map(({ path, httpStatus }) => [path, httpStatus]);
}

describe("the log of calls", () => {
  test.each<TrailTestCase>([
    { name: "contains all calls", level: "info", audit: "", want: [refused, deleted, unreadable, nothing] },
    { name: "contains only calls that name a plant", level: "warn", audit: "", want: [refused, deleted] },
    { name: "contains only calls that name a plant", level: "fatal", audit: "", want: [refused, deleted] },
    { name: "is empty", level: "silent", audit: "", want: [] },
    { name: "contains all calls", level: "info", audit: "by-level", want: [refused, deleted, unreadable, nothing] },
    { name: "is empty", level: "warn", audit: "by-level", want: [] },
  ])('$name with LOG_LEVEL=$level and PLANTSTORE_AUDIT="$audit"', async ({ level, audit, want }) => {
    expect(await callLinesOf({ LOG_LEVEL: level, PLANTSTORE_AUDIT: audit })).toEqual(want);
  });
});
