import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { JwtSource, TokenSources } from "../../packages/auth/src/index.ts";
import { readConfiguration } from "../../src/server/configuration.ts";
import { credentialSourcesOf, tokenSourcesOf } from "../../src/server/credential-settings.ts";
import { problemsOf } from "../support/server/problems-of.ts";

type Texts = Record<string, string>;

const someFile = fileURLToPath(import.meta.url);
const jwt: Texts = { PLANTSTORE_JWT_ISSUER: "https://id.example", PLANTSTORE_JWT_AUDIENCE: "plants" };
const introspection: Texts = {
  PLANTSTORE_INTROSPECTION_URL: "https://id.example/introspect",
  PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
  PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: someFile,
};

const always: Texts = { DATABASE_URL: "memory:" };

function sourcesOf(environment: Texts): TokenSources | undefined {
  return tokenSourcesOf(readConfiguration({ environment: { ...always, ...environment }, flags: {} }));
}

const issuer: JwtSource = {
  issuer: "https://id.example",
  audiences: ["plants"],
  keys: undefined,
  algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
  requireAccessTokenType: false,
  enforceScopes: false,
  scopeClaims: ["scope", "scp"],
};

test.each([
  { name: "none", environment: {}, want: "none" },
  { name: "tokens", environment: { PLANTSTORE_TOKENS: "token-of-the-test-0123" }, want: "tokens in clear" },
  { name: "a file", environment: { PLANTSTORE_TOKEN_HASHES_FILE: someFile }, want: "token hashes" },
  {
    name: "JWTs and introspection",
    environment: { ...jwt, ...introspection },
    want: "JWTs of https://id.example; introspection",
  },
])("the log says what tokens are verified with: $name", ({ environment, want }) => {
  expect(credentialSourcesOf(readConfiguration({ environment: { ...always, ...environment }, flags: {} }))).toBe(want);
});

describe("tokenSourcesOf", () => {
  test("has none when nothing is set", () => {
    expect(sourcesOf({})).toBeUndefined();
  });

  test.each<{ name: string; environment: Texts; want: Partial<TokenSources> }>([
    { name: "an issuer whose metadata is asked for its keys", environment: jwt, want: { jwt: [issuer] } },
    {
      name: "issuers with the URL of the keys of each",
      environment: {
        PLANTSTORE_JWT_ISSUER: "a, b",
        PLANTSTORE_JWT_AUDIENCE: "plants,https://plants.example",
        PLANTSTORE_JWKS_URL: "https://a.example/keys, http://127.0.0.1:9000/keys",
      },
      want: {
        jwt: [
          {
            ...issuer,
            issuer: "a",
            audiences: ["plants", "https://plants.example"],
            keys: { url: "https://a.example/keys" },
          },
          {
            ...issuer,
            issuer: "b",
            audiences: ["plants", "https://plants.example"],
            keys: { url: "http://127.0.0.1:9000/keys" },
          },
        ],
      },
    },
    {
      name: "an issuer with keys in a file",
      environment: { ...jwt, PLANTSTORE_JWKS_FILE: someFile },
      want: { jwt: [{ ...issuer, keys: { file: someFile } }] },
    },
    {
      name: "stricter demands on tokens",
      environment: {
        ...jwt,
        PLANTSTORE_JWT_ALGORITHMS: "ES256, EdDSA",
        PLANTSTORE_JWT_TYPE: "at+jwt",
        PLANTSTORE_PROVIDER_SCOPES: "demanded",
      },
      want: { jwt: [{ ...issuer, algorithms: ["ES256", "EdDSA"], requireAccessTokenType: true, enforceScopes: true }] },
    },
    {
      name: "other claims for scopes",
      environment: { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "demanded", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp, roles" },
      want: { jwt: [{ ...issuer, enforceScopes: true, scopeClaims: ["scp", "roles"] }] },
    },
    {
      name: "an introspection endpoint",
      environment: {
        ...introspection,
        PLANTSTORE_INTROSPECTION_AUDIENCE: "plants",
        PLANTSTORE_PROVIDER_SCOPES: "demanded",
      },
      want: {
        introspection: {
          url: "https://id.example/introspect",
          clientId: "plantstore",
          clientSecretFile: someFile,
          audiences: ["plants"],
          enforceScopes: true,
        },
      },
    },
  ])("has $name", ({ environment, want }) => {
    expect(sourcesOf(environment)).toEqual({
      tokens: undefined,
      tokenHashesFile: undefined,
      jwt: undefined,
      introspection: undefined,
      ...want,
    });
  });
});

describe("settings of credentials", () => {
  test.each<{ name: string; environment: Texts; want: string }>([
    {
      name: "an issuer without an audience",
      environment: { PLANTSTORE_JWT_ISSUER: "https://id.example" },
      want: "PLANTSTORE_JWT_ISSUER and PLANTSTORE_JWT_AUDIENCE must be given together",
    },
    {
      name: "an audience without an issuer",
      environment: { PLANTSTORE_JWT_AUDIENCE: "plants" },
      want: "PLANTSTORE_JWT_ISSUER and PLANTSTORE_JWT_AUDIENCE must be given together",
    },
    {
      name: "an empty audience among others",
      environment: { ...jwt, PLANTSTORE_JWT_AUDIENCE: "plants," },
      want: 'PLANTSTORE_JWT_AUDIENCE must be texts separated by commas, not "plants,"',
    },
    {
      name: "keys of nobody",
      environment: { PLANTSTORE_JWKS_URL: "https://id.example/keys" },
      want: "PLANTSTORE_JWKS_URL and PLANTSTORE_JWKS_FILE need PLANTSTORE_JWT_ISSUER",
    },
    {
      name: "keys over plain HTTP",
      environment: { ...jwt, PLANTSTORE_JWKS_URL: "http://id.example/keys" },
      want: 'PLANTSTORE_JWKS_URL must be an https URL, or http to the loopback address; several are separated by commas, not "http://id.example/keys"',
    },
    {
      name: "fewer key sets than issuers",
      environment: { ...jwt, PLANTSTORE_JWT_ISSUER: "a,b", PLANTSTORE_JWKS_URL: "https://a.example" },
      want: "PLANTSTORE_JWKS_URL must have one URL for each of PLANTSTORE_JWT_ISSUER, in their order",
    },
    {
      name: "one key file for two issuers",
      environment: { ...jwt, PLANTSTORE_JWT_ISSUER: "a,b", PLANTSTORE_JWKS_FILE: someFile },
      want: "PLANTSTORE_JWKS_FILE is for one issuer, and goes without PLANTSTORE_JWKS_URL",
    },
    {
      name: "a symmetric algorithm",
      environment: { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "RS256,HS256" },
      want: 'PLANTSTORE_JWT_ALGORITHMS must be some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, not "RS256,HS256"',
    },
    {
      name: "no algorithm at all",
      environment: { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "none" },
      want: 'PLANTSTORE_JWT_ALGORITHMS must be some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, not "none"',
    },
    {
      name: "claims for scopes that do not count",
      environment: { ...jwt, PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
      want: "PLANTSTORE_JWT_SCOPE_CLAIMS needs PLANTSTORE_JWT_ISSUER and PLANTSTORE_PROVIDER_SCOPES=demanded",
    },
    {
      name: "claims for scopes of JWTs that are not taken",
      environment: { ...introspection, PLANTSTORE_PROVIDER_SCOPES: "demanded", PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
      want: "PLANTSTORE_JWT_SCOPE_CLAIMS needs PLANTSTORE_JWT_ISSUER and PLANTSTORE_PROVIDER_SCOPES=demanded",
    },
    {
      name: "an empty claim for scopes",
      environment: { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "demanded", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp," },
      want: 'PLANTSTORE_JWT_SCOPE_CLAIMS must be texts separated by commas, not "scp,"',
    },
    {
      name: "an introspection endpoint without our name and secret",
      environment: { PLANTSTORE_INTROSPECTION_URL: "https://id.example/introspect" },
      want: "PLANTSTORE_INTROSPECTION_URL, PLANTSTORE_INTROSPECTION_CLIENT_ID and PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE must be given together",
    },
  ])("$name is one problem", ({ environment, want }) => {
    expect(problemsOf({ ...always, ...environment })).toEqual([want]);
  });

  test.each<{ name: string; environment: Texts }>([
    { name: "an issuer", environment: jwt },
    { name: "an introspection endpoint", environment: introspection },
  ])("$name is enough to listen on an exposed address", ({ environment }) => {
    expect(problemsOf({ ...environment, HOST: "0.0.0.0", DATABASE_URL: "sqlite:plants.db" })).toEqual([]);
  });
});
