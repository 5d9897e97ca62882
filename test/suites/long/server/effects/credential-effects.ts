import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { CredentialConfiguration } from "../../../../../src/server/credential-settings.ts";
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
  testAudience,
  type TestClaims,
  type TestHeader,
} from "../../../../../protoport/testing/src/auth/identity-provider.ts";
import { createTempFolder } from "../../../../../protoport/testing/src/process/temp-folder.ts";
import type { Differs } from "../../../../../protoport/testing/src/comparison.ts";
import { compare, deletePlant, type Effects, type Environment, get } from "./comparison.ts";

const token = "token-of-the-effects-test";

/** Compares whether a provider's token is accepted. */
async function compareJwt(
  off: (provider: IdentityProvider) => Environment,
  on: (provider: IdentityProvider) => Environment,
  claims: TestClaims = {},
  header: TestHeader = {},
): Promise<Differs> {
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const usual = { PLANTSTORE_JWT_ISSUERS: provider.issuer, PLANTSTORE_JWT_AUDIENCES: testAudience };
  return await compare(
    { ...usual, ...off(provider) },
    { ...usual, ...on(provider) },
    async (server) => await deletePlant(server, await provider.sign(claims, header)),
  );
}

/** Compares what an introspection endpoint gets, and whether its response is accepted. */
async function compareIntrospection(
  off: (provider: IdentityProvider) => Environment,
  on: (provider: IdentityProvider) => Environment,
  response: object = {},
): Promise<Differs> {
  using folder = createTempFolder();
  writeFileSync(folder.file("secret"), "s3cret");
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  let received: unknown;
  provider.respond = (request, reply) => {
    received = [request.url, request.headers.authorization];
    reply.end(JSON.stringify({ active: true, sub: "ada", aud: "plantstore", ...response }));
  };
  const usual = {
    PLANTSTORE_INTROSPECTION_URL: `${provider.issuer}/introspect`,
    PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
    PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("secret"),
  };
  return await compare({ ...usual, ...off(provider) }, { ...usual, ...on(provider) }, async (server) => [
    await deletePlant(server, "opaque"),
    received,
  ]);
}

const none = (): Environment => ({});

/** Compares the credential settings. */
export const credentialEffects: Effects<keyof CredentialConfiguration | "publicUrl"> = {
  tokens: () =>
    compare({ PLANTSTORE_TOKENS: "another-token-of-the-test" }, { PLANTSTORE_TOKENS: token }, (server) =>
      deletePlant(server, token),
    ),
  tokenHashesFile: async () => {
    using folder = createTempFolder();
    const hash = createHash("sha256").update(token).digest("hex");
    writeFileSync(folder.file("hashes"), `sha256:${hash} gardener - -\n`);
    return await compare(
      { PLANTSTORE_TOKENS: "another-token-of-the-test" },
      { PLANTSTORE_TOKENS: "another-token-of-the-test", PLANTSTORE_TOKEN_HASHES_FILE: folder.file("hashes") },
      (server) => deletePlant(server, token),
    );
  },
  jwtIssuers: () =>
    compareJwt(
      ({ keysUrl }) => ({ PLANTSTORE_JWT_ISSUERS: "https://other.example", PLANTSTORE_JWT_KEYS_URLS: keysUrl }),
      ({ keysUrl }) => ({ PLANTSTORE_JWT_KEYS_URLS: keysUrl }),
    ),
  jwtAudiences: () => compareJwt(() => ({ PLANTSTORE_JWT_AUDIENCES: "https://other.example" }), none),
  jwtAudienceClaim: () =>
    compareJwt(none, () => ({ PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" }), {
      aud: undefined,
      client_id: testAudience,
    }),
  jwtKeysUrls: () =>
    compareJwt(
      ({ issuer }) => ({ PLANTSTORE_JWT_KEYS_URLS: `${issuer}/other` }),
      ({ keysUrl }) => ({ PLANTSTORE_JWT_KEYS_URLS: keysUrl }),
    ),
  jwtKeysFile: async () => {
    using folder = createTempFolder();
    const other = await createSigningKey("ES256", "key");
    writeFileSync(folder.file("other"), JSON.stringify({ keys: [other.jwk] }));
    return await compareJwt(
      () => ({ PLANTSTORE_JWT_KEYS_FILE: folder.file("other") }),
      ({ keys }) => {
        writeFileSync(folder.file("keys"), JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }));
        return { PLANTSTORE_JWT_KEYS_FILE: folder.file("keys") };
      },
    );
  },
  jwtAlgorithms: () => compareJwt(() => ({ PLANTSTORE_JWT_ALGORITHMS: "RS256" }), none),
  jwtType: () => compareJwt(none, () => ({ PLANTSTORE_JWT_TYPE: "at+jwt" }), {}, { typ: "JWT" }),
  providerScopes: () => compareJwt(none, () => ({ PLANTSTORE_PROVIDER_SCOPES: "enforced" })),
  jwtScopeClaims: () => {
    const enforced = { PLANTSTORE_PROVIDER_SCOPES: "enforced" };
    const on = { ...enforced, PLANTSTORE_JWT_SCOPE_CLAIMS: "permissions" };
    return compareJwt(
      () => enforced,
      () => on,
      { permissions: ["plants:delete"] },
    );
  },
  introspectionUrl: () =>
    compareIntrospection(none, ({ issuer }) => ({ PLANTSTORE_INTROSPECTION_URL: `${issuer}/other` })),
  introspectionClientId: () => compareIntrospection(none, () => ({ PLANTSTORE_INTROSPECTION_CLIENT_ID: "other" })),
  introspectionClientSecretFile: async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("other"), "0ther");
    return await compareIntrospection(none, () => ({
      PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("other"),
    }));
  },
  introspectionAudiences: () => compareIntrospection(none, () => ({ PLANTSTORE_INTROSPECTION_AUDIENCES: "another" })),
  introspectionSubjectClaim: () =>
    compareIntrospection(none, () => ({ PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" }), {
      sub: undefined,
      client_id: "batch",
    }),
  publicUrl: () =>
    compare(
      { PLANTSTORE_TOKENS: token },
      { PLANTSTORE_TOKENS: token, PLANTSTORE_PUBLIC_URL: "https://plants.example" },
      async (server) => (await get(server, "/mcp")).headers.get("www-authenticate"),
    ),
};
