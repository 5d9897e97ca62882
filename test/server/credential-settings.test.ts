import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { JwtSource, TokenSources } from "@protoport/auth";
import { readConfiguration } from "../../src/server/configuration.ts";
import { credentialSourcesOf, tokenSourcesOf } from "../../src/server/credential-settings.ts";
import { problemsOf } from "../support/server/problems-of.ts";

type Texts = Record<string, string>;

const someFile = fileURLToPath(import.meta.url);
const jwt: Texts = { PLANTSTORE_JWT_ISSUERS: "https://id.example", PLANTSTORE_JWT_AUDIENCES: "plants" };
const introspection: Texts = {
  PLANTSTORE_INTROSPECTION_URL: "https://id.example/introspect",
  PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
  PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: someFile,
};

const defaults: Texts = { DATABASE_URL: "memory:" };

function sourcesOf(environment: Texts): TokenSources | undefined {
  return tokenSourcesOf(readConfiguration({ environment: { ...defaults, ...environment }, flags: {} }));
}

const issuer: JwtSource = {
  issuer: "https://id.example",
  audiences: ["plants"],
  keysUrl: undefined,
  keysFile: undefined,
  algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
  type: "any",
  enforceScopes: false,
  scopeClaims: ["scope", "scp"],
};

test.each([
  { name: "missing settings", environment: {}, want: "none" },
  { name: "plain tokens", environment: { PLANTSTORE_TOKENS: "token-of-the-test-0123" }, want: "plain tokens" },
  { name: "a file of token hashes", environment: { PLANTSTORE_TOKEN_HASHES_FILE: someFile }, want: "token hashes" },
  {
    name: "JWTs and introspection",
    environment: { ...jwt, ...introspection },
    want: "JWTs of https://id.example; introspection",
  },
])('credentialSourcesOf describes $name as "$want"', ({ environment, want }) => {
  expect(credentialSourcesOf(readConfiguration({ environment: { ...defaults, ...environment }, flags: {} }))).toBe(
    want,
  );
});

describe("tokenSourcesOf", () => {
  test("returns undefined without settings", () => {
    expect(sourcesOf({})).toBeUndefined();
  });

  test.each<{ name: string; environment: Texts; want: Partial<TokenSources> }>([
    { name: "an issuer without a keys URL", environment: jwt, want: { jwt: [issuer] } },
    {
      name: "two issuers with a keys URL each",
      environment: {
        PLANTSTORE_JWT_ISSUERS: "a, b",
        PLANTSTORE_JWT_AUDIENCES: "plants,https://plants.example",
        PLANTSTORE_JWT_KEYS_URLS: "https://a.example/keys, http://127.0.0.1:9000/keys",
      },
      want: {
        jwt: [
          {
            ...issuer,
            issuer: "a",
            audiences: ["plants", "https://plants.example"],
            keysUrl: "https://a.example/keys",
          },
          {
            ...issuer,
            issuer: "b",
            audiences: ["plants", "https://plants.example"],
            keysUrl: "http://127.0.0.1:9000/keys",
          },
        ],
      },
    },
    {
      name: "an issuer with keys in a file",
      environment: { ...jwt, PLANTSTORE_JWT_KEYS_FILE: someFile },
      want: { jwt: [{ ...issuer, keysFile: someFile }] },
    },
    {
      name: "an issuer with stricter token requirements",
      environment: {
        ...jwt,
        PLANTSTORE_JWT_ALGORITHMS: "ES256, EdDSA",
        PLANTSTORE_JWT_TYPE: "at+jwt",
        PLANTSTORE_PROVIDER_SCOPES: "enforced",
      },
      want: { jwt: [{ ...issuer, algorithms: ["ES256", "EdDSA"], type: "at+jwt", enforceScopes: true }] },
    },
    {
      name: "an issuer with other scope claims",
      environment: { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp, roles" },
      want: { jwt: [{ ...issuer, enforceScopes: true, scopeClaims: ["scp", "roles"] }] },
    },
    {
      name: "an introspection endpoint",
      environment: {
        ...introspection,
        PLANTSTORE_INTROSPECTION_AUDIENCES: "plants",
        PLANTSTORE_PROVIDER_SCOPES: "enforced",
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
  ])("returns $name and no other sources", ({ environment, want }) => {
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
  test.each<{ name: string; environment: Texts; want: string }>([
    {
      name: "an issuer without an audience",
      environment: { PLANTSTORE_JWT_ISSUERS: "https://id.example" },
      want: "PLANTSTORE_JWT_ISSUERS and PLANTSTORE_JWT_AUDIENCES must be set together",
    },
    {
      name: "an audience without an issuer",
      environment: { PLANTSTORE_JWT_AUDIENCES: "plants" },
      want: "PLANTSTORE_JWT_ISSUERS and PLANTSTORE_JWT_AUDIENCES must be set together",
    },
    {
      name: "an empty audience in a list",
      environment: { ...jwt, PLANTSTORE_JWT_AUDIENCES: "plants," },
      want: 'PLANTSTORE_JWT_AUDIENCES must be a comma-separated list without empty items, got "plants,"',
    },
    {
      name: "keys without an issuer",
      environment: { PLANTSTORE_JWT_KEYS_URLS: "https://id.example/keys" },
      want: "PLANTSTORE_JWT_KEYS_URLS and PLANTSTORE_JWT_KEYS_FILE require PLANTSTORE_JWT_ISSUERS",
    },
    {
      name: "keys over plain HTTP",
      environment: { ...jwt, PLANTSTORE_JWT_KEYS_URLS: "http://id.example/keys" },
      want: 'PLANTSTORE_JWT_KEYS_URLS must be a comma-separated list of https URLs, or http URLs of a loopback address, got "http://id.example/keys"',
    },
    {
      name: "fewer key sets than issuers",
      environment: { ...jwt, PLANTSTORE_JWT_ISSUERS: "a,b", PLANTSTORE_JWT_KEYS_URLS: "https://a.example" },
      want: "PLANTSTORE_JWT_KEYS_URLS must have one URL for each issuer of PLANTSTORE_JWT_ISSUERS, in the same order",
    },
    {
      name: "one key file for two issuers",
      environment: { ...jwt, PLANTSTORE_JWT_ISSUERS: "a,b", PLANTSTORE_JWT_KEYS_FILE: someFile },
      want: "PLANTSTORE_JWT_KEYS_FILE requires a single issuer, and must not be combined with PLANTSTORE_JWT_KEYS_URLS",
    },
    {
      name: "a symmetric algorithm",
      environment: { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "RS256,HS256" },
      want: 'PLANTSTORE_JWT_ALGORITHMS must be a comma-separated list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA or Ed25519, got "RS256,HS256"',
    },
    {
      name: "the algorithm none",
      environment: { ...jwt, PLANTSTORE_JWT_ALGORITHMS: "none" },
      want: 'PLANTSTORE_JWT_ALGORITHMS must be a comma-separated list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA or Ed25519, got "none"',
    },
    {
      name: "an audience claim without a JWT issuer",
      environment: { ...introspection, PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" },
      want: "PLANTSTORE_JWT_AUDIENCE_CLAIM requires PLANTSTORE_JWT_ISSUERS",
    },
    {
      name: "a subject claim without an introspection endpoint",
      environment: { ...jwt, PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" },
      want: "PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM requires PLANTSTORE_INTROSPECTION_URL",
    },
    {
      name: "scope claims while scopes are ignored",
      environment: { ...jwt, PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
      want: "PLANTSTORE_JWT_SCOPE_CLAIMS requires PLANTSTORE_JWT_ISSUERS and PLANTSTORE_PROVIDER_SCOPES=enforced",
    },
    {
      name: "scope claims without a JWT issuer",
      environment: { ...introspection, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "roles" },
      want: "PLANTSTORE_JWT_SCOPE_CLAIMS requires PLANTSTORE_JWT_ISSUERS and PLANTSTORE_PROVIDER_SCOPES=enforced",
    },
    {
      name: "an empty scope claim",
      environment: { ...jwt, PLANTSTORE_PROVIDER_SCOPES: "enforced", PLANTSTORE_JWT_SCOPE_CLAIMS: "scp," },
      want: 'PLANTSTORE_JWT_SCOPE_CLAIMS must be a comma-separated list without empty items, got "scp,"',
    },
    {
      name: "an introspection endpoint without a client id and secret",
      environment: { PLANTSTORE_INTROSPECTION_URL: "https://id.example/introspect" },
      want: "PLANTSTORE_INTROSPECTION_URL, PLANTSTORE_INTROSPECTION_CLIENT_ID and PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE must be set together",
    },
  ])("reports $name as an error", ({ environment, want }) => {
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
