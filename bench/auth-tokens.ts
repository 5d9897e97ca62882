import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

/** The `iss` claim in the bench's tokens. */
export const benchIssuer = "https://id.bench.example/realms/plants";
export const benchAudience = "https://plants.bench.example";

/** An identity provider that consists of a key file. */
export interface BenchIssuer {
  readonly keysFile: string;
  /** Signs a new token, which differs from all earlier tokens. */
  sign(): Promise<string>;
}

/** Generates a key, writes its key set to a file and signs tokens with it. */
export async function createBenchIssuer(folder: string, algorithm: string): Promise<BenchIssuer> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const keysFile = join(folder, `${algorithm}.json`);
  writeFileSync(keysFile, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: algorithm, use: "sig" }] }));
  let signed = 0;
  return {
    keysFile,
    sign: () =>
      new SignJWT(claimsOf((signed += 1)))
        .setProtectedHeader({ alg: algorithm, kid: algorithm, typ: "at+jwt" })
        .setIssuedAt()
        .setExpirationTime("1h")
        .sign(privateKey),
  };
}

// Returns the claims in an access token from Keycloak and similar providers. The token has about 800 characters when
// signed with RS256.
function claimsOf(id: number): Record<string, unknown> {
  return {
    iss: benchIssuer,
    aud: benchAudience,
    sub: "9b3f5a34-08c1-4b2c-9d57-4f1c3f1f6a11",
    jti: `onrtac:${String(id)}-6c6f2b0e-6d9f-4d7e-8d7f-3a1c1f0d2b11`,
    azp: "plant-cleanup",
    scope: "openid profile plants:read plants:delete",
    preferred_username: "service-account-plant-cleanup",
    clientAddress: "10.42.0.17",
  };
}
