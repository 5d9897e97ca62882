import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { EncryptJWT, FlattenedSign } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { OperatorLog } from "../../src/inputs/reload-record.ts";
import { openJwtVerifier, type JwtSource } from "../../src/jwt/open-jwt-verifier.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../src/token-verifier.ts";
// oxfmt-ignore
import { createSigningKey, createTempFolder, type IdentityProvider, quietLog, type SigningKey, startIdentityProvider,
  testAudience, type TestClaims, testExtension, type TestHeader } from "@protoport/testing/process";

const nowS = Math.floor(Date.now() / 1000);
let keys: Record<string, SigningKey>;
let provider: IdentityProvider;
let other: IdentityProvider;
let verifier: TokenVerifier;

beforeAll(async () => {
  const algorithms = ["RS256", "PS256", "ES256", "EdDSA", "RS512"];
  const created = await Promise.all(algorithms.map((algorithm) => createSigningKey(algorithm, `key-${algorithm}`)));
  keys = Object.fromEntries(created.map((key) => [key.algorithm, key]));
  provider = await startIdentityProvider(...created);
  // The other provider's key has the same id as the first provider's key.
  other = await startIdentityProvider(await createSigningKey("ES256", "key-ES256"));
  verifier = await open({ issuer: provider.issuer }, { issuer: other.issuer });
});

afterAll(() => {
  verifier.close?.();
  provider.stop();
  other.stop();
});

type Opened = TokenVerifier & Disposable;

async function open(...sources: readonly Partial<JwtSource>[]): Promise<Opened> {
  return await openWithLog(quietLog, ...sources);
}

async function openWithLog(log: OperatorLog, ...sources: readonly Partial<JwtSource>[]): Promise<Opened> {
  const complete = sources.map((source) => ({ issuer: provider.issuer, audiences: [testAudience], ...source }));
  const result = await openJwtVerifier(complete, log);
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  return Object.assign(result.value, { [Symbol.dispose]: () => result.value.close?.() });
}

const outcomeOf = async (token: string, by: TokenVerifier = verifier): Promise<TokenOutcome> =>
  await by.verify({ text: token, digest: digestOf(token) });

const base64url = (value: object | string): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

test.each(["RS256", "PS256", "ES256", "EdDSA"])("a valid token may use %s as its algorithm", async (algorithm) => {
  const want = { kind: "principal", subject: "ada", issuer: provider.issuer, scopes: "all" };
  expect(await outcomeOf(await provider.sign({ sub: "ada" }, {}, keys[algorithm]))).toEqual(want);
});

const closed = "http://127.0.0.1:1";

test.each<{ name: string; claims?: TestClaims; header?: TestHeader }>([
  { name: "may contain other audiences", claims: { aud: ["https://other.example", testAudience] } },
  { name: "may have the type JWT", header: { typ: "JWT" } },
  { name: "may have the type at+jwt (RFC 9068)", header: { typ: "at+jwt" } },
  { name: "may have the type application/AT+JWT", header: { typ: "application/AT+JWT" } },
  { name: "may have no iat", claims: { iat: undefined } },
  { name: "may have a subject of 255 characters", claims: { sub: "s".repeat(255) } },
  { name: "may have deeply nested claims", claims: { deep: JSON.parse("[".repeat(500) + "]".repeat(500)) } },
  { name: "may contain key URLs in its header", header: { jku: `${closed}/keys`, x5u: `${closed}/x5u` } },
])("a valid token $name", async ({ claims, header }) => {
  expect(await outcomeOf(await provider.sign(claims, header))).toMatchObject({ kind: "principal" });
});

test.each([{ typ: 5 }, { kid: 7 }])("a valid token may have a number in its header: %j", async (header) =>
  expect(await outcomeOf(await provider.sign({}, header, keys["ES256"]))).toMatchObject({ kind: "principal" }),
);

test("a valid token may repeat a claim, whose last value counts", async () => {
  const payload = JSON.stringify({ iss: provider.issuer, sub: "eve", aud: testAudience, exp: nowS + 60 });
  const token = await provider.sign(payload.replace("{", '{"sub":"ada",'));
  expect(await outcomeOf(token)).toMatchObject({ kind: "principal", subject: "eve" });
});

test.each<[name: string, want: RegExp, claims?: TestClaims | undefined, header?: TestHeader]>([
  ["is for another audience", /"aud"/, { aud: "https://other.example" }],
  ["is for other audiences", /"aud"/, { aud: ["https://other.example", `${testAudience}/`] }],
  ["has an empty audience array", /"aud"/, { aud: [] }],
  ["has no audience", /"aud"/, { aud: undefined }],
  ["has no exp", /"exp"/, { exp: undefined }],
  ["has a string for exp", /"exp"/, { exp: "2099" }],
  ["is not valid yet", /"nbf"/, { nbf: nowS + 3600 }],
  ["was issued in the future", /"iat"/, { iat: nowS + 3600 }],
  ["has no subject", /"sub"/, { sub: undefined }],
  ["has an empty subject", /"sub"/, { sub: "" }],
  ["has a subject of 256 characters", /"sub"/, { sub: "s".repeat(256) }],
  ["is bound to a key (RFC 7800)", /"cnf"/, { cnf: { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" } }],
  ["has an unknown critical parameter", /extension/i, undefined, { crit: [testExtension], [testExtension]: true }],
  ["is a logout token", /"typ"/, undefined, { typ: "logout+jwt" }],
  ["has a typ that contains another type", /"typ"/, undefined, { typ: "at+application/jwt" }],
  ["is a DPoP proof", /"typ"/, undefined, { typ: "dpop+jwt" }],
])("an invalid token that %s is rejected", async (_name, want, claims, header) => {
  const outcome = await outcomeOf(await provider.sign(claims, header));
  expect(outcome).toMatchObject({ kind: "invalid", reason: expect.stringMatching(want) });
});

test("an invalid token is rejected if its payload is unencoded (RFC 7797)", async () => {
  const key = keys["ES256"];
  if (key === undefined) throw new Error("the key was not found");
  const payload = base64url({ iss: provider.issuer, sub: "ada", aud: testAudience, exp: nowS + 60 });
  const jws = await new FlattenedSign(Buffer.from(payload))
    .setProtectedHeader({ alg: "ES256", kid: key.keyId, b64: false, crit: ["b64"] })
    .sign(key.privateKey);
  const outcome = await outcomeOf([jws.protected, payload, jws.signature].join("."));
  expect(outcome).toMatchObject({ kind: "invalid", reason: "JWTs MUST NOT use unencoded payload" });
});

test.each<[name: string, sign: () => Promise<string>, reason: string]>([
  [
    "its exp is infinite",
    () => provider.sign(`{"iss":"${provider.issuer}","sub":"ada","aud":"${testAudience}","exp":1e999}`),
    '"exp" must be a NumericDate',
  ],
  [
    "its algorithm is not allowed",
    () => provider.sign({}, {}, keys["RS512"]),
    '"alg" (Algorithm) Header Parameter value not allowed',
  ],
  ["another trusted issuer has signed it", () => other.sign({ iss: provider.issuer }), "signature verification failed"],
])("an invalid token is rejected if %s", async (_name, sign, reason) => {
  expect(await outcomeOf(await sign())).toMatchObject({ kind: "invalid", reason });
});

test("an invalid token is rejected if its own header contains the key", async () => {
  const own = await createSigningKey("ES256", "key-ES256");
  const token = await provider.sign({}, { jwk: own.jwk }, own);
  expect(await outcomeOf(token)).toMatchObject({ kind: "invalid", reason: "signature verification failed" });
});

test("an invalid token is rejected if several keys match and it has no kid", async () => {
  const [a, b] = [await createSigningKey("ES256", "a"), await createSigningKey("ES256", "b")];
  const twoKeyProvider = await startIdentityProvider(a, b);
  using by = await open({ issuer: twoKeyProvider.issuer });
  const want = { kind: "invalid", reason: expect.stringContaining("several keys match") };
  expect(await outcomeOf(await twoKeyProvider.sign({}, { kid: undefined }), by)).toMatchObject(want);
  twoKeyProvider.stop();
});

test.each<[name: string, spoil: (parts: readonly string[]) => string]>(
  // oxfmt-ignore
  [
    ["has a modified payload",
      ([head = "", , tail = ""]) => [head, base64url({ iss: provider.issuer, sub: "eve" }), tail].join(".")],
    ["has a modified header",
      ([, body = "", tail = ""]) => [base64url({ alg: "PS256", kid: "key-PS256" }), body, tail].join(".")],
    ["has a modified signature",
      ([head = "", body = "", tail = ""]) => [head, body,
        (tail.startsWith("A") ? "B" : "A") + tail.slice(1)].join(".")],
    ["has a truncated signature", ([head = "", body = "", tail = ""]) => [head, body, tail.slice(0, 20)].join(".")],
    ["has alg none and a signature",
      ([, body = "", tail = ""]) => [base64url({ alg: "none" }), body, tail].join(".")],
    ["has an HMAC with the public key as secret", ([, body = ""]) => {
        const input = `${base64url({ alg: "HS256", kid: "key-RS256" })}.${body}`;
        return `${input}.${createHmac("sha256", JSON.stringify(keys["RS256"]?.jwk)).update(input).digest("base64url")}`;
      }],
    ["has a header that is not JSON", ([, body = "", tail = ""]) => [base64url("{"), body, tail].join(".")],
    ["has a header that is an array", ([, body = "", tail = ""]) => [base64url("[]"), body, tail].join(".")],
    ["has an alg that is not a string",
      ([, body = "", tail = ""]) => [base64url({ alg: 256 }), body, tail].join(".")],
  ],
)("an invalid token that %s is rejected", async (_, spoil) => {
  expect(await outcomeOf(spoil((await provider.sign()).split(".")))).toMatchObject({ kind: "invalid" });
});

test.each<[name: string, token: () => string | Promise<string>]>(
  // oxfmt-ignore
  [
      ["is from another issuer", () => provider.sign({ iss: "https://evil.example" })],
      ["is from an issuer with an additional slash", () => provider.sign({ iss: `${provider.issuer}/` })],
      ["has no issuer", () => provider.sign({ iss: undefined })],
      ["is opaque", () => "2YotnFZFEjr1zCsicMWpAA"],
      ["has no signature", () => `${base64url({ alg: "none" })}.${base64url({ iss: provider.issuer })}.`],
      ["has a payload that is not JSON", () => `${base64url({ alg: "RS256" })}.${base64url("nothing")}.AAAA`],
      ["has a payload that is not UTF-8",
        () => `${base64url({ alg: "RS256" })}.${Buffer.from([0x7b, 0xff]).toString("base64url")}.AAAA`],
      ["is encrypted",
        () => new EncryptJWT({ iss: provider.issuer }).setProtectedHeader({ alg: "dir",
          enc: "A128GCM" }).encrypt(Buffer.alloc(16))],
      ["consists of dots", () => ".".repeat(8000)],
      ["is 8 KiB of nested arrays", () => `${base64url({ alg: "RS256" })}.${base64url("[".repeat(6000))}.AAAA`],
    ],
)("a token that %s gets the outcome unknown", async (_, token) => {
  expect(await outcomeOf(await token())).toMatchObject({ kind: "unknown" });
});

test.each([
  { typ: "at+jwt", want: "principal", verb: "accepts" },
  { typ: "JWT", want: "invalid", verb: "rejects" },
  { typ: undefined, want: "invalid", verb: "rejects" },
  { typ: 5, want: "invalid", verb: "rejects" },
])("a verifier with the type at+jwt (RFC 9068) $verb the typ $typ in a token", async ({ typ, want }) => {
  using by = await open({ type: "at+jwt" });
  expect(await outcomeOf(await provider.sign({}, { typ }), by)).toMatchObject({ kind: want });
});

test.each<{ name: string; scopeClaims?: readonly string[]; claims: TestClaims; want: readonly string[] }>(
  // oxfmt-ignore
  [
      { name: "are read from scope, separated by spaces", claims: { scope: "orders:delete  orders:read" },
        want: ["orders:delete", "orders:read"] },
      { name: "are read from Entra's scp", claims: { scp: "orders:delete" }, want: ["orders:delete"] },
      { name: "are read from Okta's scp", claims: { scp: ["orders:delete", 7] }, want: ["orders:delete"] },
      { name: "are empty if the token has none", claims: {}, want: [] },
      { name: "are empty if the claim is an object", claims: { scope: { "orders:delete": true } }, want: [] },
      { name: "are not read from roles", claims: { roles: ["orders:delete"] }, want: [] },
      { name: "are not read from inherited properties such as constructor",
        scopeClaims: ["constructor", "__proto__", "toString"], claims: { scope: "orders:delete" }, want: [] },
      { name: "are read only from the configured claims", scopeClaims: ["roles"],
        claims: { scope: "orders:delete", roles: ["orders:read"] }, want: ["orders:read"] },
    ],
)("scopes with enforceScopes $name", async ({ claims, want, scopeClaims }) => {
  using by = await open({ enforceScopes: true, scopeClaims });
  expect(await outcomeOf(await provider.sign(claims), by)).toMatchObject({ kind: "principal", scopes: new Set(want) });
});

test("scope claims are ignored without enforceScopes", async () => {
  using by = await open({ scopeClaims: ["roles"] });
  expect(await outcomeOf(await provider.sign({ roles: [] }), by)).toMatchObject({ kind: "principal", scopes: "all" });
});

test.each<[name: string, sources: readonly JwtSource[], want: readonly RegExp[]]>(
  // oxfmt-ignore
  [
    ["an issuer with no audience", [{ issuer: "https://a.example", audiences: [] }],
      [/must have at least one audience, and no empty one/]],
    ["an empty audience", [{ issuer: "https://a.example", audiences: [""] }],
      [/must have at least one audience, and no empty one/]],
    ["a non-URL issuer without a key source", [{ issuer: "a", audiences: ["b"] }], [/is not a valid URL/]],
    ["an issuer over plain HTTP", [{ issuer: "http://a.example", audiences: ["b"] }], [/must use https/]],
    ["two key sources", [{ issuer: "a", audiences: ["b"], keysUrl: "c", keysFile: "d" }], [/a must .*not both$/]],
    ["a missing key file", [{ issuer: "a", audiences: ["b"], keysFile: "/nowhere/keys" }], [/does not exist$/]],
    ["a key file without keys", [{ issuer: "a", audiences: ["b"], keysFile: import.meta.filename }],
      [/\.ts: the key set /]],
    ["each invalid issuer",
      [{ issuer: "a", audiences: [] }, { issuer: "b", audiences: ["c"] }, { issuer: "b", audiences: ["c"] }],
      [/must have at least one audience, and no empty one/, /is not a valid URL/, /is not a valid URL/,
        /configured twice/]],
  ],
)("openJwtVerifier reports %s as a problem", async (_, sources, want) => {
  const result = await openJwtVerifier(sources, quietLog);
  expect(result).toEqual({ kind: "problems", problems: want.map((pattern) => expect.stringMatching(pattern)) });
});

test("openJwtVerifier rejects tokens of keys removed from a key file", async () => {
  using folder = createTempFolder();
  const path = folder.file("keys.json");
  const [before, after] = await Promise.all([createSigningKey("ES256", "before"), createSigningKey("ES256", "after")]);
  writeFileSync(path, JSON.stringify({ keys: [before.jwk] }));
  const reported: unknown[] = [];
  const log = { warn: () => {}, info: (...line: unknown[]) => void reported.push(line) };
  using by = await openWithLog(log, { keysFile: path });
  const [oldToken, newToken] = [await provider.sign({}, {}, before), await provider.sign({}, {}, after)];
  const kinds = async () => [(await outcomeOf(oldToken, by)).kind, (await outcomeOf(newToken, by)).kind];
  expect(await kinds()).toEqual(["principal", "invalid"]);
  writeFileSync(path, JSON.stringify({ keys: [after.jwk] }));
  await by.reload?.();
  expect(await kinds()).toEqual(["invalid", "principal"]);
  expect(reported).toEqual([[{ path, keys: 1 }, "key set reloaded"]]);
});

test("openJwtVerifier uses the configured algorithms instead of the defaults", async () => {
  using by = await open({ algorithms: ["RS512"] });
  const tokens = await Promise.all(["RS512", "ES256"].map((name) => provider.sign({}, {}, keys[name])));
  const outcomes = await Promise.all(tokens.map((token) => outcomeOf(token, by)));
  expect(outcomes).toMatchObject([{ kind: "principal" }, { kind: "invalid" }]);
});

test("an expired token is accepted after the clock is set back", async () => {
  const token = await provider.sign({ sub: "ada", iat: nowS - 7_200, exp: nowS - 600 });
  expect(await outcomeOf(token)).toMatchObject({ kind: "expired" });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
  try {
    expect(await outcomeOf(token)).toMatchObject({ kind: "principal", subject: "ada" });
  } finally {
    vi.useRealTimers();
  }
});

describe("audienceClaim", () => {
  const client = { aud: undefined, client_id: testAudience };

  test.each<[name: string, claims: TestClaims, reason?: string, audienceClaim?: string]>(
    // oxfmt-ignore
    [
      ["accepts the claim in a token without aud", client],
      ["accepts an array in the claim", { ...client, client_id: ["a", testAudience] }],
      ["accepts an access token of Amazon Cognito", { ...client, token_use: "access" }],
      ["accepts a valid aud, whatever the claim contains", { client_id: "other" }],
      ["refuses an ID token of Amazon Cognito", { token_use: "id" }, '"token_use" must be "access"'],
      ["refuses another aud, even if the claim is valid", { aud: "other", client_id: testAudience },
        '"aud" contains no accepted audience'],
      ["refuses an empty array in aud, even if the claim is valid", { aud: [], client_id: testAudience },
        '"aud" contains no accepted audience'],
      ["refuses a claim with another client", { ...client, client_id: "other" },
        '"client_id" contains no accepted audience'],
      ["refuses a token with neither aud nor the claim", { aud: undefined },
        '"client_id" contains no accepted audience'],
      ["refuses the inherited property constructor as the claim", client, '"constructor" contains no accepted audience',
        "constructor"],
    ],
  )("%s", async (_name, claims, reason, audienceClaim = "client_id") => {
    using by = await open({ audienceClaim });
    const want = reason === undefined ? { kind: "principal" } : { kind: "invalid", reason };
    expect(await outcomeOf(await provider.sign(claims), by)).toMatchObject(want);
  });

  test("is off by default, so that a token without aud is rejected", async () => {
    const reason = 'missing required "aud" claim';
    expect(await outcomeOf(await provider.sign(client))).toEqual({ kind: "invalid", reason });
  });
});
