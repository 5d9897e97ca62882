import { exportJWK, generateKeyPair, type JWK } from "jose";
import { expect, test } from "vitest";

import { defaultJwtAlgorithms } from "../../../../src/operators/auth/jwt/jwt-algorithm.ts";
import { readKeySet } from "../../../../src/operators/auth/jwt/key-set.ts";

async function publicJwk(algorithm: string): Promise<JWK> {
  const { publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return await exportJWK(publicKey);
}

const [rsa, ec, otherCurve] = await Promise.all([publicJwk("PS256"), publicJwk("ES256"), publicJwk("ES384")]);

test.each<{ name: string; keys: readonly JWK[] }>([
  { name: "is empty: all keys are withdrawn", keys: [] },
  { name: "has a key that does not say what for", keys: [rsa] },
  { name: "has two keys for one algorithm", keys: [ec, ec] },
  { name: "has a key whose id is no text", keys: [Object.assign({}, ec, { kid: 7 })] },
  {
    name: "has a key that may verify, with certificates beside it",
    keys: [{ ...ec, key_ops: ["verify"], x5c: ["AA"] }],
  },
  { name: "has a good key after one that is broken", keys: [{ kty: "RSA", n: "AQAB" }, ec] },
])("a key set is used that $name", async ({ keys }) => {
  expect(await readKeySet(JSON.stringify({ keys }), defaultJwtAlgorithms)).toEqual({ kind: "value", value: { keys } });
});

test.each<{ name: string; key: JWK }>([
  { name: "is for encryption", key: { ...rsa, use: "enc" } },
  { name: "may not verify", key: { ...rsa, key_ops: ["encrypt"] } },
  { name: "is symmetric", key: { kty: "oct", k: "AAAA", alg: "HS256" } },
  { name: "is for an algorithm that is not allowed", key: { ...rsa, alg: "RS512" } },
  { name: "is on a curve that is not allowed", key: otherCurve },
  { name: "has no members", key: { kty: "EC", crv: "P-256" } },
  { name: "is no point on its curve", key: { ...ec, x: "AAAA" } },
  { name: "has its private part with it", key: { ...ec, d: "AAAA" } },
])("a key set is refused whose only key $name", async ({ key }) => {
  const problems = ["none of the 1 keys of the set verifies RS256, PS256, ES256, EdDSA"];
  const set = await readKeySet(JSON.stringify({ keys: [key] }), defaultJwtAlgorithms);
  expect(set).toEqual({ kind: "problems", problems });
});

test.each(["{}", '{"keys":{}}', '{"keys":[null]}'])("%s is no key set", async (text) => {
  const problems = ['the key set has no array "keys" of objects'];
  expect(await readKeySet(text, defaultJwtAlgorithms)).toEqual({ kind: "problems", problems });
});
