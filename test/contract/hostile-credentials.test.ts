import { createHmac, createPublicKey } from "node:crypto";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Health } from "@protoport/gateway/health";
import { ServerReflection } from "@protoport/gateway/reflection";
import { openTokenVerifier, type TokenVerifier } from "@protoport/auth";
import { openMemoryStore } from "../../src/stores/index.ts";
// oxfmt-ignore
import { collect, createSigningKey, exchangeHttp1, type Field, fieldValue,
  type IdentityProvider, KeptConnections, openHttp1, openLogLines, quietLog, rowsFor, type SigningKey,
  startIdentityProvider, testAudience, usesHandler, type Wire, wiresOf, wiresWithTools
} from "@protoport/testing";
import { type GuardedGateway, startGuardedGateway } from "../support/server/guarded-gateway.ts";
import { startPlantServer, testVerifier, type TestPlantServer, tokens } from "../support/server/plant-server.ts";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { expectedResponse, actualResponse, type Want } from "./expected-response.ts";

const plant = 7n;
const nowS = Math.floor(Date.now() / 1000);
const { log, text: logged } = openLogLines("trace");
let key: SigningKey;
let stranger: SigningKey;
let provider: IdentityProvider;
let verifier: TokenVerifier;
let server: TestPlantServer;

beforeAll(async () => {
  [key, stranger] = await Promise.all([createSigningKey("RS256", "key"), createSigningKey("RS256", "key")]);
  provider = await startIdentityProvider(key);
  const opened = await openTokenVerifier({ jwt: [{ issuer: provider.issuer, audiences: [testAudience] }] }, quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  verifier = opened.value;
  server = await startPlantServer({ verifier, store: openMemoryStore(new Set([plant])), log });
});

const connections = new KeptConnections();

afterAll(async () => {
  connections[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
  verifier.close?.();
  provider.stop();
});

const challenge = 'Bearer realm="plantstore"';
const malformedText = "the Authorization header must contain a single bearer token";

function unauthenticated(message: string, error: string): Want {
  const fields = { "www-authenticate": `${challenge}, error="${error}", error_description="${message}"` };
  return { code: "unauthenticated", message, fields };
}

const required = { code: "unauthenticated", message: "a bearer token is required" } as const;
const missing: Want = { ...required, fields: { "www-authenticate": challenge } };
const malformed = unauthenticated(malformedText, "invalid_request");
const invalid = unauthenticated("the token is not valid", "invalid_token");
const expired = unauthenticated("the token has expired", "invalid_token");

const base64url = (value: object | string): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

async function partsOf(token: Promise<string>): Promise<[string, string, string]> {
  const [head = "", body = "", signature = ""] = (await token).split(".");
  return [head, body, signature];
}

/** Returns a valid token's claims signed with an HMAC. */
async function hmacOf(secret: string | Buffer): Promise<string> {
  const input = `${base64url({ alg: "HS256", kid: "key" })}.${(await partsOf(provider.sign()))[1]}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

interface TestCase {
  readonly name: string;
  readonly credentials: () => readonly string[] | Promise<readonly string[]>;
  readonly want: Want;
}

const deep = "[".repeat(2500) + "]".repeat(2500);
const pemOf = () => createPublicKey({ key: { ...key.jwk }, format: "jwk" }).export({ type: "spki", format: "pem" });

async function withOtherPayload(): Promise<string> {
  const [head, , signature] = await partsOf(provider.sign());
  return `${head}.${base64url({ iss: provider.issuer, sub: "root", aud: testAudience, exp: nowS + 60 })}.${signature}`;
}

// One bearer token per kind. situations.ts covers the forms that a credential can have.
// protoport/auth/test/bearer-token.test.ts and jwt/open-jwt-verifier.test.ts cover the spellings.
// oxfmt-ignore
const tokenCases: readonly (readonly [name: string, token: () => string | Promise<string>, want?: Want])[] = [
  ["a letter beyond ASCII", () => "abcdefghijklmnop\u00e9", malformed],
  ["a token of 8 KiB and a character", () => "a".repeat(8193), malformed],
  ["a token of 8 KiB", () => "a".repeat(8192)],
  ["an opaque token", () => "2YotnFZFEjr1zCsicMWpAA"],
  ["alg none without a signature",
    async () => `${base64url({ alg: "none" })}.${(await partsOf(provider.sign()))[1]}.`],
  ["HS256 with the PEM public key as its secret", () => hmacOf(pemOf())],
  ["another payload with the signature of a valid token", withOtherPayload],
  ["a signature by another key with the same id", () => provider.sign({}, {}, stranger)],
  ["another key in the header", () => provider.sign({}, { jwk: stranger.jwk }, stranger)],
  ["an unknown key", () => provider.sign({}, { kid: "../../etc/passwd" })],
  ["a token that expired a second before the clock skew", () => provider.sign({ exp: nowS - 31 }), expired],
  ["a token without an expiry", () => provider.sign({ exp: undefined })],
  ["a token for another audience", () => provider.sign({ aud: "https://other.example" })],
  ["deeply nested claims of 5 KB, for another audience", () => provider.sign({ aud: "x", deep: JSON.parse(deep) })],
  ["a payload of brackets", () => `${base64url({ alg: "RS256", kid: "key" })}.${base64url("[".repeat(5000))}.AAAA`],
];

// oxfmt-ignore
const hostileCredentials: readonly TestCase[] = [
  { name: "no credential", credentials: () => [], want: missing },
  { name: "a token without a scheme", credentials: async () => [await provider.sign()], want: missing },
  { name: "a valid token after Basic", credentials: async () => ["Basic dTpw", `Bearer ${await provider.sign()}`],
    want: missing },
  ...tokenCases.map(([name, token, want = invalid]) =>
    ({ name, credentials: async () => [`Bearer ${await token()}`], want })),
];

const wires = wiresOf("rest", "connect-json", "grpc-web", "grpc");
const rowsOver = (wire: (typeof wires)[number]) => rowsFor(wire, wires, hostileCredentials);
const testCases = wires.flatMap((wire) => rowsOver(wire).map((testCase) => ({ ...testCase, wire })));

async function responseTo(
  { format, httpVersion }: Wire,
  credentials: readonly string[],
  { address }: Pick<TestPlantServer, "address"> = server,
): Promise<unknown> {
  const header = credentials.map((credential): Field => ["authorization", credential]);
  const request = deletePlantRequest(format, plant, header);
  return actualResponse(format, await connections.exchange(address, httpVersion, request));
}

describe("a hostile credential", () => {
  test.each(testCases)("is refused and never logged ($name over $wire.name)", async ({ wire, credentials, want }) => {
    const sent = await credentials();
    expect(await responseTo(wire, sent)).toStrictEqual(expectedResponse(wire.format, want));
    // No part of the credential may appear in the log.
    for (const secret of sent.flatMap((credential) => credential.match(/[A-Za-z0-9._-]{20,}/g) ?? []))
      expect(logged()).not.toContain(secret);
  });

  test.each(wiresOf("rest", "connect-json", "grpc-web").filter(({ httpVersion }) => httpVersion === "1.1"))(
    "of a megabyte over $name is refused before it is read completely",
    async ({ format }) => {
      using connection = await openHttp1(server.address);
      connection.socket.on("error", () => {
        // The server may close the connection before it has read everything.
      });
      connection.request(deletePlantRequest(format, plant, [["authorization", `Bearer ${"a".repeat(2 ** 20)}`]]));
      const response = await connection.readResponse();
      expect(response.httpStatus).toBe(431);
      // A server of node responds without an error record.
      if (!usesHandler) expect(JSON.parse(response.body.toString())).toMatchObject({ error: 8 });
    },
  );

  test.each([
    ["the query", (token: string) => `/plants/7?access_token=${token}`, undefined],
    ["a form in the body", () => "/plants/7", (token: string) => Buffer.from(`access_token=${token}`)],
  ])("in %s is ignored, even if it is a valid token (RFC 6750 §2.2, §2.3)", async (_name, path, body) => {
    const token = await provider.sign();
    const header: Field[] = [["content-type", "application/x-www-form-urlencoded"]];
    const request = { httpMethod: "DELETE", path: path(token), header, ...(body && { body: body(token) }) };
    const response = await exchangeHttp1(server.address, request);
    expect([response.httpStatus, fieldValue(response.header, "www-authenticate")]).toEqual([400, challenge]);
  });
});

const insufficient: Want = {
  code: "permission_denied",
  message: "the token lacks the scope plants:delete",
  fields: {
    "www-authenticate": `${challenge}, error="insufficient_scope", error_description="the token lacks the scope plants:delete", scope="plants:delete"`,
  },
};

type ClientTransport = { readonly protocol: string; readonly openTransport: (baseUrl: string) => Transport };

const transports: readonly ClientTransport[] = [
  { protocol: "gRPC", openTransport: (baseUrl) => createGrpcTransport({ baseUrl }) },
  { protocol: "gRPC-Web", openTransport: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }) },
  { protocol: "Connect", openTransport: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }) },
];

async function* listServices() {
  yield { messageRequest: { case: "listServices", value: "*" } } as const;
}

// Each of the two checks is sufficient by itself, so that a defect in the other has no effect.
describe.each(["admit", "interceptor"] as const)("a hostile credential checked only by %s", (guard) => {
  let guarded: GuardedGateway;

  beforeAll(async () => {
    // The provider's tokens have all scopes.
    const withNarrow: TokenVerifier = {
      verify: (token) => (token.text === tokens.narrow ? testVerifier : verifier).verify(token),
    };
    const store = openMemoryStore(new Set([plant]));
    guarded = await startGuardedGateway(guard, { verifier: withNarrow, store, log });
  });

  afterAll(() => guarded[Symbol.asyncDispose]());

  test.each(testCases)("is refused ($name over $wire.name)", async ({ wire, credentials, want }) => {
    expect(await responseTo(wire, await credentials(), guarded)).toStrictEqual(expectedResponse(wire.format, want));
  });

  test.each(wiresWithTools)("is refused over $name if it lacks the scope", async (wire) => {
    const response = await responseTo(wire, [`Bearer ${tokens.narrow}`], guarded);
    expect(response).toStrictEqual(expectedResponse(wire.format, insufficient));
  });

  test.each(transports.flatMap((transport) => hostileCredentials.map((testCase) => ({ ...transport, ...testCase }))))(
    "is refused by reflection ($name over $protocol)",
    async ({ openTransport, credentials, want }) => {
      const client = createClient(ServerReflection, openTransport(guarded.baseUrl));
      const headers = (await credentials()).map((credential): [string, string] => ["authorization", credential]);
      const call = collect(client.serverReflectionInfo(listServices(), { headers }));
      const { code, rawMessage, metadata } = ConnectError.from(await call.catch((reason: unknown) => reason));
      const expected = [Code.Unauthenticated, want.message, want.fields?.["www-authenticate"]];
      expect([code, rawMessage, metadata.get("www-authenticate")]).toEqual(expected);
    },
  );

  test.each(transports)("is ignored by health checks ($protocol)", async ({ openTransport }) => {
    const client = createClient(Health, openTransport(guarded.baseUrl));
    for (const headers of [{}, { authorization: "Bearer wrong" }]) {
      expect(await client.check({}, { headers })).toMatchObject({ status: 1 });
      for await (const { status } of client.watch({}, { headers })) {
        expect(status).toBe(1);
        break;
      }
    }
  });

  test("does not prevent a deletion with a valid token", async () => {
    const token = await provider.sign();
    const [rest] = wiresOf("rest");
    if (rest === undefined) throw new Error("REST has no wire");
    expect(await responseTo(rest, [`Bearer ${token}`], guarded)).toMatchObject({ httpStatus: 204 });
  });
});

describe("after all hostile credentials", () => {
  test("the plant still exists, and a valid token deletes it", async () => {
    const token = await provider.sign();
    const [rest] = wiresOf("rest");
    if (rest === undefined) throw new Error("REST has no wire");
    expect(await responseTo(rest, [`Bearer ${token}`])).toMatchObject({ httpStatus: 204 });
    expect(logged()).not.toContain(token);
    // Ensures that the log contains the refusals, in which the tests above have found no credential.
    expect(logged()).toContain('"refusal":"expired"');
  });
});
