import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createSigningKey, startIdentityProvider } from "../../../testing/src/auth/identity-provider.ts";
import { quietLog } from "../../../testing/src/operations/quiet-log.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { openIntrospectionVerifier } from "../../src/introspection/open-introspection-verifier.ts";
import { digestOf, type TokenOutcome } from "../../src/token-verifier.ts";

/** Verifies an active token about which the endpoint responds with these members. */
async function outcomeOf(members: object, subjectClaim: string | undefined): Promise<TokenOutcome> {
  using folder = createTempFolder();
  using provider = await startIdentityProvider(await createSigningKey("RS256", "key"));
  provider.respond = (_, response) => void response.end(JSON.stringify({ active: true, ...members }));
  const clientSecretFile = folder.file("secret");
  writeFileSync(clientSecretFile, "secret");
  const source = { url: `${provider.issuer}/introspect`, clientId: "orders", clientSecretFile, subjectClaim };
  const opened = await openIntrospectionVerifier(source, quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const outcome = await opened.value.verify({ text: "opaque", digest: digestOf("opaque") });
  opened.value.close?.();
  return outcome;
}

describe("subjectClaim", () => {
  test.each<{ name: string; members: object; subjectClaim?: string; subject?: string; reason?: string }>([
    { name: "identifies the caller if sub is missing", members: { client_id: "batch" }, subject: "batch" },
    { name: "is ignored if sub is present", members: { sub: "ada", client_id: "batch" }, subject: "ada" },
    {
      name: "does not replace an invalid sub",
      members: { sub: "", client_id: "batch" },
      reason: '"sub" must be a string of 1 to 255 characters',
    },
    {
      name: "is required if sub is missing",
      members: {},
      reason: '"client_id" must be a string of 1 to 255 characters',
    },
    {
      name: "is rejected if its value exceeds 255 characters",
      members: { client_id: "c".repeat(256) },
      reason: '"client_id" must be a string of 1 to 255 characters',
    },
    {
      name: "does not accept the inherited property constructor",
      members: { client_id: "batch" },
      subjectClaim: "constructor",
      reason: '"constructor" must be a string of 1 to 255 characters',
    },
  ])("$name", async ({ members, subjectClaim = "client_id", subject, reason }) => {
    const want = reason === undefined ? { kind: "principal", subject } : { kind: "invalid", reason };
    expect(await outcomeOf(members, subjectClaim)).toMatchObject(want);
  });

  test("is off by default, so that a token without sub is rejected", async () => {
    const reason = 'the response has no "sub", and no other claim is configured';
    expect(await outcomeOf({ client_id: "batch" }, undefined)).toEqual({ kind: "invalid", reason });
  });
});
