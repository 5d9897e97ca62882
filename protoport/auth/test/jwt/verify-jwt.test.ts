import { errors, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from "jose";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { IssuerKeys } from "../../src/jwt/issuer-keys.ts";
import { createJwtVerifier } from "../../src/jwt/open-jwt-verifier.ts";
import { type TrustedIssuer, verifyJwt } from "../../src/jwt/verify-jwt.ts";
import type { ExpiringOutcome } from "../../src/outcome-cache.ts";
import { digestOf } from "../../src/token-verifier.ts";

const nowS = Math.floor(Date.now() / 1000);
const good: JWTPayload = { iss: "https://id.example", aud: "orders", sub: "ada", exp: nowS + 600 };
let privateKey: CryptoKey;
let publicKey: CryptoKey;
beforeAll(async () => void ({ privateKey, publicKey } = await generateKeyPair("EdDSA")));

/** Returns an issuer whose EdDSA tokens for the audience `orders` are accepted. */
const trustedIssuer = (keys: Pick<IssuerKeys, "find" | "current">): TrustedIssuer => ({
  issuer: "https://id.example",
  audiences: ["orders"],
  audienceClaim: undefined,
  scopeClaims: undefined,
  algorithms: ["EdDSA"],
  requireAccessTokenType: false,
  keys: {
    find: keys.find,
    get current() {
      return keys.current;
    },
    fetchedAtMs: undefined,
    retryAfterS: undefined,
    problem: undefined,
    reload: () => Promise.resolve(),
    close: () => {},
  },
});

async function verify(
  claims: JWTPayload,
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<ExpiringOutcome> {
  const header = { ...parameters, alg: "EdDSA" };
  const token = await new SignJWT({ ...good, ...claims }).setProtectedHeader(header).sign(privateKey);
  return await verifyJwt(token, trustedIssuer({ find: () => publicKey, current: publicKey }));
}

test("verifyJwt caches the outcome of a valid token until expiry plus clock skew", async () =>
  expect(await verify({ exp: nowS + 600 })).toEqual({
    outcome: { kind: "principal", subject: "ada", issuer: "https://id.example", scopes: "all" },
    untilMs: (nowS + 630) * 1000,
  }));

test.each([
  ["that expired 29 s ago", "principal", { exp: nowS - 29 }],
  ["that expired 30 s ago", "expired", { exp: nowS - 30 }],
  ["issued and valid in 30 s", "principal", { iat: nowS + 30, nbf: nowS + 30 }],
  ["valid in 31 s", "invalid", { nbf: nowS + 31 }],
  ["issued in 31 s", "invalid", { iat: nowS + 31 }],
])("a token %s has the outcome %s", async (_name, kind, claims) => {
  vi.useFakeTimers({ toFake: ["Date"], now: nowS * 1000 });
  onTestFinished(() => void vi.useRealTimers());
  expect((await verify(claims)).outcome.kind).toBe(kind);
});

test.each([
  { name: "that has expired", claims: { exp: nowS - 600 }, kind: "expired" },
  { name: "for another audience", claims: { aud: "other" }, kind: "invalid" },
  { name: "from an untrusted issuer", claims: { iss: "https://evil.example" }, kind: "invalid" },
  { name: "with an empty subject", claims: { sub: "" }, kind: "invalid" },
  { name: "with a backslash in a claim's name", claims: { "a\\": 1 }, kind: "invalid" },
])("the outcome for a token $name is cached for one minute", async ({ claims, kind }) => {
  const before = Date.now();
  const { outcome, untilMs } = await verify(claims);
  expect(outcome.kind).toBe(kind);
  expect(untilMs).toBeGreaterThanOrEqual(before + 60_000);
  expect(untilMs).toBeLessThanOrEqual(Date.now() + 60_000);
});

test("a token with a backslash in a header parameter's name is invalid", async () => {
  expect((await verify({}, { "cr\\": ["b64"] })).outcome.kind).toBe("invalid");
  expect((await verify({}, { cr: ["b64"] })).outcome.kind).toBe("principal");
});

test.each([
  { name: "is not valid yet", claims: { nbf: nowS + 600 } },
  { name: "was issued in the future", claims: { iat: nowS + 600 } },
])("the outcome for a token that $name is not cached", async ({ claims }) => {
  expect(await verify(claims)).toMatchObject({ outcome: { kind: "invalid" }, untilMs: 0 });
});

test("an outcome is not cached if the key set changes meanwhile", async () => {
  const [oldSet, newSet] = [{}, {}];
  let current = oldSet;
  const verifier = createJwtVerifier([
    trustedIssuer({
      find: () => {
        if (current === newSet) throw new errors.JWKSNoMatchingKey();
        current = newSet;
        return publicKey;
      },
      get current() {
        return current;
      },
    }),
  ]);
  const text = await new SignJWT(good).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
  const kind = async () => (await verifier.verify({ text, digest: digestOf(text) })).kind;
  expect([await kind(), await kind()]).toEqual(["principal", "invalid"]);
});
