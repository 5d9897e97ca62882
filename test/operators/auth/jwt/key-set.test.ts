import { exportJWK, generateKeyPair, type JWK } from "jose";
import { beforeAll, describe, expect, test } from "vitest";

import { defaultJwtAlgorithms, type JwtAlgorithm } from "../../../../src/operators/auth/jwt/jwt-algorithm.ts";
import { readKeySet, type KeySet } from "../../../../src/operators/auth/jwt/key-set.ts";

const jwks: Record<"rsa" | "small" | "ec" | "other" | "ed", JWK> = { rsa: {}, small: {}, ec: {}, other: {}, ed: {} };

async function publicJwk(algorithm: string, modulusLength = 2048): Promise<JWK> {
  const { publicKey } = await generateKeyPair(algorithm, { modulusLength, extractable: true });
  return await exportJWK(publicKey);
}

beforeAll(async () => {
  // jose makes no key this small, but a provider may.
  const { publicKey } = await crypto.subtle.generateKey(
    { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
    true,
    ["sign", "verify"],
  );
  jwks.small = await exportJWK(publicKey);
  [jwks.rsa, jwks.ec, jwks.other, jwks.ed] = await Promise.all([
    publicJwk("RS256"),
    publicJwk("ES256"),
    publicJwk("ES384"),
    publicJwk("EdDSA"),
  ]);
});

async function keySetOf(...keys: readonly unknown[]): Promise<KeySet> {
  const set = await readKeySet(JSON.stringify({ keys }), defaultJwtAlgorithms);
  if (set.kind === "problems") throw new Error(set.problems.join("; "));
  return set.value;
}

describe("a key of a set", () => {
  test.each<{ name: string; key: () => object; algorithm: JwtAlgorithm; keyId: string | undefined; want: string }>([
    { name: "is found by its id", key: () => ({ ...jwks.ec, kid: "a" }), algorithm: "ES256", keyId: "a", want: "key" },
    {
      name: "is found without an id, when it is the only one",
      key: () => ({ ...jwks.ec, kid: "a" }),
      algorithm: "ES256",
      keyId: undefined,
      want: "key",
    },
    {
      name: "is not found by another id",
      key: () => ({ ...jwks.ec, kid: "a" }),
      algorithm: "ES256",
      keyId: "b",
      want: "unknown-key",
    },
    {
      name: "without an id is not found by one",
      key: () => jwks.ec,
      algorithm: "ES256",
      keyId: "a",
      want: "unknown-key",
    },
    {
      name: "whose id is no text has none",
      key: () => ({ ...jwks.ec, kid: 7 }),
      algorithm: "ES256",
      keyId: undefined,
      want: "key",
    },
    {
      name: "serves RS256 where it does not say what for",
      key: () => jwks.rsa,
      algorithm: "RS256",
      keyId: undefined,
      want: "key",
    },
    {
      name: "serves PS256 where it does not say what for",
      key: () => jwks.rsa,
      algorithm: "PS256",
      keyId: undefined,
      want: "key",
    },
    {
      name: "of RSA serves with 8192 bits",
      key: () => ({ ...jwks.rsa, n: Buffer.alloc(1024, 0xff).toString("base64url") }),
      algorithm: "RS256",
      keyId: undefined,
      want: "key",
    },
    {
      name: "for PS256 does not serve RS256",
      key: () => ({ ...jwks.rsa, alg: "PS256" }),
      algorithm: "RS256",
      keyId: undefined,
      want: "unknown-key",
    },
    {
      name: "of RSA does not serve ES256",
      key: () => jwks.rsa,
      algorithm: "ES256",
      keyId: undefined,
      want: "unknown-key",
    },
    {
      name: "that may verify serves",
      key: () => ({ ...jwks.ed, key_ops: ["verify"] }),
      algorithm: "EdDSA",
      keyId: undefined,
      want: "key",
    },
    {
      name: "with certificates beside it serves",
      key: () => ({ ...jwks.ec, x5c: ["AAAA"], x5t: "AAAA" }),
      algorithm: "ES256",
      keyId: undefined,
      want: "key",
    },
  ])("$name", async ({ key, algorithm, keyId, want }) => {
    expect((await keySetOf(key())).find(algorithm, keyId).kind).toBe(want);
  });

  test.each<{ name: string; key: () => unknown }>([
    { name: "for encryption", key: () => ({ ...jwks.rsa, use: "enc" }) },
    { name: "that may not verify", key: () => ({ ...jwks.rsa, key_ops: ["encrypt"] }) },
    { name: "that is symmetric", key: () => ({ kty: "oct", k: "AAAA", alg: "HS256" }) },
    { name: "for an algorithm that is not allowed", key: () => ({ ...jwks.rsa, alg: "RS512" }) },
    { name: "on a curve that is not allowed", key: () => jwks.other },
    { name: "of RSA with 1024 bits", key: () => jwks.small },
    {
      name: "of RSA with 8200 bits, each signature of which takes long",
      key: () => ({ ...jwks.rsa, n: Buffer.alloc(1025, 0xff).toString("base64url") }),
    },
    { name: "without its members", key: () => ({ kty: "RSA", n: "AQAB" }) },
    { name: "that is no point on its curve", key: () => ({ ...jwks.ec, x: "AAAA" }) },
    { name: "that is null", key: () => null },
  ])("is passed over that is a key $name, and the others are used", async ({ key }) => {
    const set = await keySetOf(key(), { ...jwks.ec, kid: "good" });
    expect(set.size).toBe(1);
    expect(set.find("ES256", "good").kind).toBe("key");
    const alone = await readKeySet(JSON.stringify({ keys: [key()] }), defaultJwtAlgorithms);
    expect(alone).toEqual({
      kind: "problems",
      problems: ["none of the 1 keys of the set verifies RS256, PS256, ES256, EdDSA"],
    });
  });

  test("is one of two of the same id: the token does not say which", async () => {
    const set = await keySetOf({ ...jwks.ec, kid: "a" }, { ...jwks.ec, kid: "a" });
    expect(set.find("ES256", "a")).toEqual({ kind: "ambiguous" });
  });

  test("beyond the hundredth is not looked at", async () => {
    const keys = Array.from({ length: 100 }, () => ({ kty: "oct" }));
    const set = await readKeySet(JSON.stringify({ keys: [...keys, jwks.ec] }), defaultJwtAlgorithms);
    expect(set).toMatchObject({ kind: "problems" });
  });

  test("is read without its private part, should a provider publish it", async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    const search = (await keySetOf(await exportJWK(privateKey))).find("ES256", undefined);
    expect(search).toMatchObject({ kind: "key", key: { type: "public" } });
  });
});
