import { exportJWK, generateKeyPair, type JWK } from "jose";
import { expect, test } from "vitest";
import { defaultJwtAlgorithms } from "../../src/jwt/jwt-algorithm.ts";
import { readKeySet } from "../../src/jwt/key-set.ts";

async function publicJwk(algorithm: string): Promise<JWK> {
  const { publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return await exportJWK(publicKey);
}

/** Returns an RSA public key with this modulus length, without a private key. */
const rsaOf = (bits: number): JWK => ({ kty: "RSA", e: "AQAB", n: Buffer.alloc(bits / 8, 0xff).toString("base64url") });

const [rsa, ec, otherCurve] = await Promise.all([publicJwk("PS256"), publicJwk("ES256"), publicJwk("ES384")]);
const good: JWK = { ...ec, kid: "good" };

test.each<[name: string, key: object, want: JWK]>([
  ["without use and key_ops", rsa, rsa],
  ["with an RSA modulus of 8192 bits", rsaOf(8192), rsaOf(8192)],
  ["with kid, alg and use", { ...good, alg: "ES256", use: "sig" }, { ...good, alg: "ES256", use: "sig" }],
  ["whose kid is not a string", { ...ec, kid: 7 }, ec],
  ["with key_ops verify", { ...ec, key_ops: ["verify"] }, ec],
  ["with key_ops sign and verify", { ...ec, key_ops: ["sign", "verify"] }, ec],
  ["with a string for ext", { ...ec, ext: "true" }, ec],
  ["with additional RSA primes", { ...rsa, oth: [{ r: "AQ" }] }, rsa],
  ["with certificates", { ...ec, x5c: ["AA"], x5t: "AA" }, ec],
])("a key %s is accepted", async (_name, key, want) => {
  const set = await readKeySet(JSON.stringify({ keys: [key] }), defaultJwtAlgorithms);
  expect(set).toEqual({ kind: "value", value: { keys: [want] } });
});

test.each<{ name: string; key: unknown }>([
  { name: "if it is for encryption", key: { ...rsa, use: "enc" } },
  { name: "if its use is not a string", key: { ...rsa, use: null } },
  { name: "if key_ops lacks verify", key: { ...rsa, key_ops: ["encrypt"] } },
  { name: "if key_ops is not an array", key: { ...rsa, key_ops: "verify" } },
  { name: "if it is symmetric", key: { kty: "oct", k: "AAAA", alg: "HS256" } },
  { name: "if it is for an algorithm that is not allowed", key: { ...rsa, alg: "RS512" } },
  { name: "if its alg is not a string", key: { ...rsa, alg: 256 } },
  { name: "if it is on a curve that is not allowed", key: otherCurve },
  { name: "if it has an RSA modulus of 1024 bits", key: rsaOf(1024) },
  { name: "if it has an RSA modulus of 8200 bits", key: rsaOf(8200) },
  { name: "if its members are missing", key: { kty: "EC", crv: "P-256" } },
  { name: "if it is not a point on its curve", key: { ...ec, x: "AAAA" } },
  { name: "if it contains a private key", key: { ...ec, d: "AAAA" } },
  { name: "if it is null", key: null },
  { name: "if it is a string", key: "RSA" },
])("a key in a key set is ignored $name, and the other keys are used", async ({ key }) => {
  const withAnother = await readKeySet(JSON.stringify({ keys: [key, good] }), defaultJwtAlgorithms);
  expect(withAnother).toEqual({ kind: "value", value: { keys: [good] } });
  const alone = await readKeySet(JSON.stringify({ keys: [key] }), defaultJwtAlgorithms);
  const problems = ["none of the 1 keys in the key set can verify RS256, PS256, ES256, EdDSA"];
  expect(alone).toEqual({ kind: "problems", problems });
});

test("a key in a key set is ignored if a hundred keys precede it", async () => {
  const set = async (before: number): Promise<unknown> =>
    await readKeySet(JSON.stringify({ keys: [...Array.from({ length: before }, () => 0), ec] }), defaultJwtAlgorithms);
  expect([await set(99), await set(100)]).toMatchObject([{ kind: "value" }, { kind: "problems" }]);
});

test("readKeySet accepts an empty key set", async () =>
  expect(await readKeySet('{"keys":[]}', defaultJwtAlgorithms)).toEqual({ kind: "value", value: { keys: [] } }));

test.each(["{}", '{"keys":{}}'])("readKeySet rejects %s as a key set", async (text) => {
  const problems = ['the key set has no "keys" array'];
  expect(await readKeySet(text, defaultJwtAlgorithms)).toEqual({ kind: "problems", problems });
});
