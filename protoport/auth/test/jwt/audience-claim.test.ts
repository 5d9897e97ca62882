import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
  testAudience,
  type TestClaims,
} from "../../../testing/src/auth/identity-provider.ts";
import { quietLog } from "../../../testing/src/operations/quiet-log.ts";
import { openJwtVerifier } from "../../src/jwt/open-jwt-verifier.ts";
import { digestOf, type TokenOutcome } from "../../src/token-verifier.ts";

let provider: IdentityProvider;
beforeAll(async () => {
  provider = await startIdentityProvider(await createSigningKey("RS256", "key"));
});
afterAll(() => provider.stop());

/** Verifies a token with these claims. */
async function outcomeOf(claims: TestClaims, audienceClaim: string | undefined): Promise<TokenOutcome> {
  const source = { issuer: provider.issuer, audiences: [testAudience], audienceClaim };
  const opened = await openJwtVerifier([source], quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const text = await provider.sign(claims);
  const outcome = await opened.value.verify({ text, digest: digestOf(text) });
  opened.value.close?.();
  return outcome;
}

describe("audienceClaim", () => {
  const client = { aud: undefined, client_id: testAudience };

  test.each<{ name: string; claims: TestClaims; audienceClaim?: string; reason?: string }>([
    { name: "accepts the claim in a token without aud", claims: client },
    { name: "accepts an array in the claim", claims: { ...client, client_id: ["a", testAudience] } },
    { name: "accepts an access token of Amazon Cognito", claims: { ...client, token_use: "access" } },
    { name: "accepts a valid aud, whatever the claim contains", claims: { client_id: "other" } },
    {
      name: "refuses an ID token of Amazon Cognito",
      claims: { token_use: "id" },
      reason: '"token_use" must be "access"',
    },
    {
      name: "refuses another aud, even if the claim is valid",
      claims: { aud: "other", client_id: testAudience },
      reason: '"aud" contains no accepted audience',
    },
    {
      name: "refuses an empty array in aud, even if the claim is valid",
      claims: { aud: [], client_id: testAudience },
      reason: '"aud" contains no accepted audience',
    },
    {
      name: "refuses a claim with another client",
      claims: { ...client, client_id: "other" },
      reason: '"client_id" contains no accepted audience',
    },
    {
      name: "refuses a token with neither aud nor the claim",
      claims: { aud: undefined },
      reason: '"client_id" contains no accepted audience',
    },
    {
      name: "refuses the inherited property constructor as the claim",
      claims: client,
      audienceClaim: "constructor",
      reason: '"constructor" contains no accepted audience',
    },
  ])("$name", async ({ claims, audienceClaim = "client_id", reason }) => {
    const want = reason === undefined ? { kind: "principal" } : { kind: "invalid", reason };
    expect(await outcomeOf(claims, audienceClaim)).toMatchObject(want);
  });

  test("is off by default, so that a token without aud is rejected", async () => {
    const refused = await outcomeOf(client, undefined);
    expect(refused).toEqual({ kind: "invalid", reason: 'missing required "aud" claim' });
  });
});
