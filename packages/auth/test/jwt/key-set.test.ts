import { exportJWK, generateKeyPair, type JWK } from "jose";
import { describe, expect, test } from "vitest";

import { defaultJwtAlgorithms } from "../../src/jwt/jwt-algorithm.ts";
import { readKeySet } from "../../src/jwt/key-set.ts";

async function publicJwk(algorithm: string): Promise<JWK> {
  const { publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return await exportJWK(publicKey);
}

/** An RSA key of any length; nobody has its private part. */
function rsaOf(bits: number): JWK {
  return { kty: "RSA", e: "AQAB", n: Buffer.alloc(bits / 8, 0xff).toString("base64url") };
}

const [rsa, ec, otherCurve] = await Promise.all([publicJwk("PS256"), publicJwk("ES256"), publicJwk("ES384")]);
const good: JWK = { ...ec, kid: "good" };

test.each<{ name: string; key: object; want: JWK }>([
  { name: "that does not say what for", key: rsa, want: rsa },
  { name: "of RSA with 8192 bits", key: rsaOf(8192), want: rsaOf(8192) },
  {
    name: "with its id, algorithm and use",
    key: { ...good, alg: "ES256", use: "sig" },
    want: { ...good, alg: "ES256", use: "sig" },
  },
  { name: "whose id is not a text, as one without an id", key: { ...ec, kid: 7 }, want: ec },
  { name: "that may verify", key: { ...ec, key_ops: ["verify"] }, want: ec },
  { name: "that may sign too", key: { ...ec, key_ops: ["sign", "verify"] }, want: ec },
  { name: "whose ext is a text", key: { ...ec, ext: "true" }, want: ec },
  { name: "of RSA with other primes", key: { ...rsa, oth: [{ r: "AQ" }] }, want: rsa },
  { name: "with certificates beside it", key: { ...ec, x5c: ["AA"], x5t: "AA" }, want: ec },
])("a key is used $name", async ({ key, want }) => {
  const set = await readKeySet(JSON.stringify({ keys: [key] }), defaultJwtAlgorithms);
  expect(set).toEqual({ kind: "value", value: { keys: [want] } });
});

describe("a key is passed over, and the others are used,", () => {
  test.each<{ name: string; key: unknown }>([
    { name: "that is for encryption", key: { ...rsa, use: "enc" } },
    { name: "whose use is not a text", key: { ...rsa, use: null } },
    { name: "that may not verify", key: { ...rsa, key_ops: ["encrypt"] } },
    { name: "whose operations are not a list", key: { ...rsa, key_ops: "verify" } },
    { name: "that is symmetric", key: { kty: "oct", k: "AAAA", alg: "HS256" } },
    { name: "that is for an algorithm that is not allowed", key: { ...rsa, alg: "RS512" } },
    { name: "whose algorithm is not a text", key: { ...rsa, alg: 256 } },
    { name: "on a curve that is not allowed", key: otherCurve },
    { name: "of RSA with 1024 bits", key: rsaOf(1024) },
    { name: "of RSA with 8200 bits, each signature of which takes long", key: rsaOf(8200) },
    { name: "without its members", key: { kty: "EC", crv: "P-256" } },
    { name: "that is not a point on its curve", key: { ...ec, x: "AAAA" } },
    { name: "whose private part is published with it", key: { ...ec, d: "AAAA" } },
    { name: "that is null", key: null },
    { name: "that is a text", key: "RSA" },
  ])("$name", async ({ key }) => {
    const beside = await readKeySet(JSON.stringify({ keys: [key, good] }), defaultJwtAlgorithms);
    expect(beside).toEqual({ kind: "value", value: { keys: [good] } });
    const alone = await readKeySet(JSON.stringify({ keys: [key] }), defaultJwtAlgorithms);
    const problems = ["none of the 1 keys in the key set can verify RS256, PS256, ES256, EdDSA"];
    expect(alone).toEqual({ kind: "problems", problems });
  });

  test("that is the hundred and first", async () => {
    const set = async (before: number): Promise<unknown> =>
      await readKeySet(
        JSON.stringify({ keys: [...Array.from({ length: before }, () => 0), ec] }),
        defaultJwtAlgorithms,
      );
    expect([await set(99), await set(100)]).toMatchObject([{ kind: "value" }, { kind: "problems" }]);
  });
});

test("a key set that says that there are no keys withdraws them all", async () => {
  expect(await readKeySet('{"keys":[]}', defaultJwtAlgorithms)).toEqual({ kind: "value", value: { keys: [] } });
});

test.each(["{}", '{"keys":{}}'])("%s is no key set", async (text) => {
  const problems = ['the key set has no "keys" array'];
  expect(await readKeySet(text, defaultJwtAlgorithms)).toEqual({ kind: "problems", problems });
});
