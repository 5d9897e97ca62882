import { describe, expect, test } from "vitest";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
// oxfmt-ignore
import { exchange, type Field, fieldValue, type HttpResponse, readOutcome, readWebTrailer, type Wire, wiresWithTools
} from "@protoport/testing";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { expectedResponse, actualResponse } from "../contract/expected-response.ts";
import type { TokenVerifier } from "@protoport/auth";
// oxfmt-ignore
import { authorized, bearer, startPlantServer, type TestPlantServer, testVerifier, tokens
} from "../support/server/index.ts";

// One call in 1,000 s, so that a test's second call is above the limit even on a slow machine.
const rate = 0.001;

const [rest] = wiresWithTools;
const from = (address: string): Field => ["x-forwarded-for", address];
const trustedProxies = ["127.0.0.1"];
const verifiers: readonly { readonly how: string; readonly verifier: TokenVerifier }[] = [
  { how: "synchronously", verifier: testVerifier },
  { how: "asynchronously", verifier: { verify: async (token) => testVerifier.verify(token) } },
];

function call(server: TestPlantServer, wire: Wire | undefined, header: readonly Field[]): Promise<HttpResponse> {
  if (wire === undefined) throw new Error("there is no wire");
  return exchange(server.address, wire.httpVersion, deletePlantRequest(wire.format, 7n, header));
}

describe.each(wiresWithTools)("$name", (wire) => {
  const testCases = (["principal", "address"] as const).flatMap((name) => verifiers.map((each) => ({ name, ...each })));
  test.each(testCases)("a call above the $name rate limit is refused (verified $how)", async (testCase) => {
    const { name, verifier } = testCase;
    const rates = name === "principal" ? { ratePerPrincipal: rate } : { ratePerAddress: rate };
    const store = openMemoryStore(new Set([7n]));
    await using server = await startPlantServer({ store, verifier, tools: createPlantTools(), ...rates });
    const first = await call(server, wire, [authorized]);
    expect(readOutcome(wire.format, first).code).toBe(0);
    const response = await call(server, wire, [authorized]);
    const waitS = fieldValue(fieldsOf(wire, response), "retry-after") ?? "";
    expect(Number(waitS)).toBeGreaterThan(900);
    const limit = { "ratelimit-policy": `"${name}";q=1;w=1000`, ratelimit: `"${name}";r=0;t=${waitS}` };
    const message = `too many calls: the ${name} limit is 0.001 per second`;
    const want = { code: "resource_exhausted", errorCode: "ERR_RATE_LIMITED", message } as const;
    const found = actualResponse(wire.format, response);
    expect(found).toEqual(expectedResponse(wire.format, { ...want, fields: { "retry-after": waitS, ...limit } }));
  });
});

function fieldsOf({ format }: Wire, response: HttpResponse): readonly Field[] {
  return format.protocol === "grpc-web" ? readWebTrailer(format, response) : response.header;
}

test.each(verifiers)("a principal verified $how has the same rate limit for all addresses", async ({ verifier }) => {
  await using server = await startPlantServer({ verifier, ratePerPrincipal: rate, trustedProxies });
  // Calls with a refused token or without the scope do not count.
  // oxfmt-ignore
  const calls: readonly (readonly [credential: Field, address: string, want: string])[] = [
    [bearer(tokens.unknown), "203.0.113.2", "unauthenticated"], [bearer(tokens.narrow), "203.0.113.2", "permission_denied"],
    [authorized, "203.0.113.1", "not_found"], [authorized, "203.0.113.2", "resource_exhausted"],
    [bearer(tokens.unknown), "203.0.113.2", "unauthenticated"],
  ];
  for (const [credential, address, want] of calls) expect(await codeOf(server, [credential, from(address)])).toBe(want);
});

// oxfmt-ignore
const names: Readonly<Record<number, string>> = {
  5: "not_found", 7: "permission_denied", 8: "resource_exhausted", 16: "unauthenticated",
};

async function codeOf(server: TestPlantServer, header: readonly Field[]): Promise<string> {
  const { error }: { error: number } = JSON.parse(String((await call(server, rest, header)).body));
  return names[error] ?? String(error);
}

test.each([
  ["203.0.113.1", "203.0.113.2", "unauthenticated"],
  // A forged address before the client's is ignored.
  ["203.0.113.1", "198.51.100.1, 203.0.113.1", "resource_exhausted"],
  ["2001:db8:0:1::1", "2001:db8:0:1:ffff::1", "resource_exhausted"],
  ["2001:db8:0:1::1", "2001:db8:0:2::1", "unauthenticated"],
])('after a call from %s, a call from "%s" gets "%s" with a rate limit per address', async (first, second, want) => {
  await using server = await startPlantServer({ ratePerAddress: rate, trustedProxies });
  await codeOf(server, [from(first)]);
  expect(await codeOf(server, [from(second)])).toBe(want);
});

test("rates do not apply to probes and health checks", async () => {
  await using server = await startPlantServer({ ratePerAddress: rate, ratePerPrincipal: rate });
  const probe = { httpMethod: "GET", path: "/readyz", header: [] };
  const header: readonly Field[] = [["content-type", "application/json"]];
  const health = { httpMethod: "POST", path: "/grpc.health.v1.Health/Check", header, body: Buffer.from("{}") };
  for (const request of [probe, health, probe, health])
    expect((await exchange(server.address, "1.1", request)).httpStatus).toBe(200);
});
