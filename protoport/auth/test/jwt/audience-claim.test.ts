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

  test.each<[name: string, claims: TestClaims, reason?: string, audienceClaim?: string]>(
    // oxfmt-ignore
    [
      ["accepts the claim in a token without aud", client],
      ["accepts an array in the claim", { ...client, client_id: ["a", testAudience] }],
      ["accepts an access token of Amazon Cognito", { ...client, token_use: "access" }],
      ["accepts a valid aud, whatever the claim contains", { client_id: "other" }],
      ["refuses an ID token of Amazon Cognito", { token_use: "id" }, '"token_use" must be "access"'],
      ["refuses another aud, even if the claim is valid", { aud: "other", client_id: testAudience },
        '"aud" contains no accepted audience'],
      ["refuses an empty array in aud, even if the claim is valid", { aud: [], client_id: testAudience },
        '"aud" contains no accepted audience'],
      ["refuses a claim with another client", { ...client, client_id: "other" },
        '"client_id" contains no accepted audience'],
      ["refuses a token with neither aud nor the claim", { aud: undefined },
        '"client_id" contains no accepted audience'],
      ["refuses the inherited property constructor as the claim", client, '"constructor" contains no accepted audience',
        "constructor"],
    ],
  )("%s", async (_name, claims, reason, audienceClaim = "client_id") => {
    const want = reason === undefined ? { kind: "principal" } : { kind: "invalid", reason };
    expect(await outcomeOf(claims, audienceClaim)).toMatchObject(want);
  });

  test("is off by default, so that a token without aud is rejected", async () => {
    const refused = await outcomeOf(client, undefined);
    expect(refused).toEqual({ kind: "invalid", reason: 'missing required "aud" claim' });
  });
});
