import { errors, generateKeyPair, SignJWT } from "jose";
import { expect, test } from "vitest";
import { createJwtVerifier } from "../../src/jwt/open-jwt-verifier.ts";
import { digestOf } from "../../src/token-verifier.ts";
import { trustedIssuer } from "./trusted-issuer.ts";

test("an outcome is not cached if the key set changes meanwhile", async () => {
  const { privateKey, publicKey } = await generateKeyPair("EdDSA");
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
  const claims = { iss: "https://id.example", aud: "orders", sub: "ada", exp: Math.floor(Date.now() / 1000) + 600 };
  const text = await new SignJWT(claims).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
  const verify = async () => (await verifier.verify({ text, digest: digestOf(text) })).kind;
  expect([await verify(), await verify()]).toEqual(["principal", "invalid"]);
});
