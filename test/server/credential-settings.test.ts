import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { JwtSource, TokenSources } from "@protoport/auth";
import { readConfiguration } from "../../src/server/configuration.ts";
import { credentialSourcesOf, settingNamesOfSources, tokenSourcesOf } from "../../src/server/credential-settings.ts";
import { problemsOf } from "../support/server/start-configured.ts";

type Texts = Record<string, string>;
const someFile = fileURLToPath(import.meta.url);
const jwt: Texts = { PLANTSTORE_JWT_ISSUERS: "https://id.example", PLANTSTORE_JWT_AUDIENCES: "plants" };
const introspection: Texts = {
  PLANTSTORE_INTROSPECTION_URL: "https://id.example/introspect",
  PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
  PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: someFile,
};

const defaults: Texts = { DATABASE_URL: "memory:" };

const sourcesOf = (environment: Texts): TokenSources | undefined =>
  tokenSourcesOf(readConfiguration({ environment: { ...defaults, ...environment }, flags: {} }));

// oxfmt-ignore
const issuer: JwtSource = {
  issuer: "https://id.example", audiences: ["plants"], keysUrl: undefined, keysFile: undefined,
  algorithms: ["RS256", "PS256", "ES256", "EdDSA"], type: "any", enforceScopes: false, scopeClaims: ["scope", "scp"] };

test.each([
  ["missing settings", "none", {}],
  ["plain tokens", "plain tokens", { PLANTSTORE_TOKENS: "token-of-the-test-0123" }],
  ["a file of token hashes", "token hashes", { PLANTSTORE_TOKEN_HASHES_FILE: someFile }],
  ["JWTs and introspection", "JWTs of https://id.example; introspection", { ...jwt, ...introspection }],
])('credentialSourcesOf describes %s as "%s"', (_name, want, environment) => {
  const found = credentialSourcesOf(readConfiguration({ environment: { ...defaults, ...environment }, flags: {} }));
  expect(found).toBe(want);
});

test.for([
  [undefined, "PLANTSTORE_JWT_ISSUERS"],
  ["jwks.json", "PLANTSTORE_JWT_KEYS_FILE"],
])("settingNamesOfSources with the keys file %s names JWTs by %s", ([jwtKeysFile, want]) => {
  expect(settingNamesOfSources({ jwtKeysFile }).jwt).toBe(want);
});

describe("tokenSourcesOf", () => {
  test("returns undefined without settings", () => expect(sourcesOf({})).toBeUndefined());

  test.each<[name: string, environment: Texts, want: Partial<TokenSources>]>(
    // oxfmt-ignore
    [
      ["an issuer without a keys URL", jwt, { jwt: [issuer] }],
      ["two issuers with a keys URL each",
        { PLANTSTORE_JWT_ISSUERS: "a, b", PLANTSTORE_JWT_AUDIENCES: "plants,https://plants.example",
          PLANTSTORE_JWT_KEYS_URLS: "https://a.example/keys, http://127.0.0.1:9000/keys" }, { jwt: [
            { ...issuer, issuer: "a", audiences: ["plants", "https://plants.example"],
              keysUrl: "https://a.example/keys" },
            { ...issuer, issuer: "b", audiences: ["plants", "https://plants.example"],
              keysUrl: "http://127.0.0.1:9000/keys" },
          ],
        }],
      ["an issuer with keys in a file", { ...jwt, PLANTSTORE_JWT_KEYS_FILE: someFile },
        { jwt: [{ ...issuer, keysFile: someFile }] }],
      ["an issuer with stricter token requirements",
        { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "ES256, EdDSA", PLANTSTORE_JWT_TYPE: "at+jwt",
          PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id", PLANTSTORE_PROVIDER_SCOPES: "enforced" },
        { jwt: [{ ...issuer, audienceClaim: "client_id", algorithms: ["ES256", "EdDSA"], type: "at+jwt", enforceScopes: true }] }],
      ["an issuer with other scope claims",
        { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp, roles" },
        { jwt: [{ ...issuer, enforceScopes: true, scopeClaims: ["scp", "roles"] }] }],
      ["an introspection endpoint",
        { ...introspection, PLANTSTORE_INTROSPECTION_AUDIENCES: "plants",
          PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id", PLANTSTORE_PROVIDER_SCOPES: "enforced" },
        { introspection: { url: "https://id.example/introspect", clientId: "plantstore", clientSecretFile: someFile,
            audiences: ["plants"], subjectClaim: "client_id", enforceScopes: true } }],
    ],
  )("returns %s and no other sources", (_name, environment, want) => {
    expect(sourcesOf(environment)).toEqual({
      tokens: undefined,
      tokenHashesFile: undefined,
      jwt: undefined,
      introspection: undefined,
      ...want,
    });
  });
});

describe("readConfiguration", () => {
  test.each<[name: string, environment: Texts, want: string]>(
    // oxfmt-ignore
    [
      ["an issuer without an audience", { PLANTSTORE_JWT_ISSUERS: "https://id.example" },
        "PLANTSTORE_JWT_ISSUERS requires PLANTSTORE_JWT_AUDIENCES"],
      ["an audience without an issuer", { PLANTSTORE_JWT_AUDIENCES: "plants" },
        "PLANTSTORE_JWT_AUDIENCES requires PLANTSTORE_JWT_ISSUERS"],
      ["an empty audience in a list", { ...jwt, PLANTSTORE_JWT_AUDIENCES: "plants," },
        'PLANTSTORE_JWT_AUDIENCES must be a comma-separated list without empty items, got "plants,"'],
      ["keys without an issuer", { PLANTSTORE_JWT_KEYS_URLS: "https://id.example/keys" },
        "PLANTSTORE_JWT_KEYS_URLS requires PLANTSTORE_JWT_ISSUERS"],
      ["a file of keys without an issuer", { PLANTSTORE_JWT_KEYS_FILE: someFile },
        "PLANTSTORE_JWT_KEYS_FILE requires PLANTSTORE_JWT_ISSUERS"],
      ["signature algorithms without an issuer", { ...introspection, PLANTSTORE_JWT_ALGORITHMS: "ES256" },
        "PLANTSTORE_JWT_ALGORITHMS requires PLANTSTORE_JWT_ISSUERS"],
      ["a type of JWTs without an issuer", { ...introspection, PLANTSTORE_JWT_TYPE: "at+jwt" },
        "PLANTSTORE_JWT_TYPE requires PLANTSTORE_JWT_ISSUERS"],
      ["keys over plain HTTP", { ...jwt, PLANTSTORE_JWT_KEYS_URLS: "http://id.example/keys" },
        'PLANTSTORE_JWT_KEYS_URLS must be a comma-separated list of https URLs, or http URLs of a loopback address, got "http://id.example/keys"'],
      ["fewer key sets than issuers",
        { ...jwt, PLANTSTORE_JWT_ISSUERS: "a,b", PLANTSTORE_JWT_KEYS_URLS: "https://a.example" },
        "PLANTSTORE_JWT_KEYS_URLS must have one URL for each issuer of PLANTSTORE_JWT_ISSUERS, in the same order"],
      ["one key file for two issuers", { ...jwt, PLANTSTORE_JWT_ISSUERS: "a,b", PLANTSTORE_JWT_KEYS_FILE: someFile },
        "PLANTSTORE_JWT_KEYS_FILE requires a single issuer, and must not be combined with PLANTSTORE_JWT_KEYS_URLS"],
      ["a key file and a key URL",
        { ...jwt, PLANTSTORE_JWT_KEYS_FILE: someFile, PLANTSTORE_JWT_KEYS_URLS: "https://id.example/keys" },
        "PLANTSTORE_JWT_KEYS_FILE requires a single issuer, and must not be combined with PLANTSTORE_JWT_KEYS_URLS"],
      ["a symmetric algorithm", { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "RS256,HS256" },
        'PLANTSTORE_JWT_ALGORITHMS must be a comma-separated list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA or Ed25519, got "RS256,HS256"'],
      ["the algorithm none", { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "none" },
        'PLANTSTORE_JWT_ALGORITHMS must be a comma-separated list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA or Ed25519, got "none"'],
      ["another type of JWTs", { ...jwt, PLANTSTORE_JWT_TYPE: "at+JWT" },
        'PLANTSTORE_JWT_TYPE must be any or at+jwt, got "at+JWT"'],
      ["an audience claim without a JWT issuer", { ...introspection, PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" },
        "PLANTSTORE_JWT_AUDIENCE_CLAIM requires PLANTSTORE_JWT_ISSUERS"],
      ["a subject claim without an introspection endpoint",
        { ...jwt, PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" },
        "PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM requires PLANTSTORE_INTROSPECTION_URL"],
      ["audiences without an introspection endpoint", { ...jwt, PLANTSTORE_INTROSPECTION_AUDIENCES: "plants" },
        "PLANTSTORE_INTROSPECTION_AUDIENCES requires PLANTSTORE_INTROSPECTION_URL"],
      ["enforced scopes without an identity provider",
        { PLANTSTORE_TOKENS: "token-of-the-test-0123", PLANTSTORE_PROVIDER_SCOPES: "enforced" },
        "PLANTSTORE_PROVIDER_SCOPES=enforced requires PLANTSTORE_JWT_ISSUERS or PLANTSTORE_INTROSPECTION_URL"],
      ["scope claims while scopes are ignored", { ...jwt, PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
        "PLANTSTORE_JWT_SCOPE_CLAIMS requires PLANTSTORE_JWT_ISSUERS and PLANTSTORE_PROVIDER_SCOPES=enforced"],
      ["scope claims without a JWT issuer",
        { ...introspection, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
        "PLANTSTORE_JWT_SCOPE_CLAIMS requires PLANTSTORE_JWT_ISSUERS and PLANTSTORE_PROVIDER_SCOPES=enforced"],
      ["an empty scope claim", { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp," },
        'PLANTSTORE_JWT_SCOPE_CLAIMS must be a comma-separated list without empty items, got "scp,"'],
      ["an introspection endpoint without a client id",
        { ...introspection, PLANTSTORE_INTROSPECTION_CLIENT_ID: "" },
        "PLANTSTORE_INTROSPECTION_URL requires PLANTSTORE_INTROSPECTION_CLIENT_ID"],
      ["an introspection endpoint without a client secret",
        { ...introspection, PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: "" },
        "PLANTSTORE_INTROSPECTION_URL requires PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE"],
      ["a client id without an introspection endpoint", { PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore" },
        "PLANTSTORE_INTROSPECTION_CLIENT_ID requires PLANTSTORE_INTROSPECTION_URL"],
      ["a client secret without an introspection endpoint",
        { PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: someFile },
        "PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE requires PLANTSTORE_INTROSPECTION_URL"],
    ],
  )("reports %s as an error", (_name, environment, want) => {
    expect(problemsOf({ ...defaults, ...environment })).toEqual([want]);
  });

  test.each<{ name: string; environment: Texts }>([
    { name: "a plain token", environment: { PLANTSTORE_TOKENS: "sixteen-characters" } },
    { name: "a JWT issuer", environment: jwt },
    { name: "an introspection endpoint", environment: introspection },
  ])("accepts HOST=0.0.0.0 if $name is configured", ({ environment }) => {
    expect(problemsOf({ ...environment, HOST: "0.0.0.0", DATABASE_URL: "sqlite:plants.db" })).toEqual([]);
  });
});
