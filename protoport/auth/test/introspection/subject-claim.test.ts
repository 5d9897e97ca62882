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
  test.each<
    [name: string, members: object, reason?: string | undefined, subject?: string | undefined, subjectClaim?: string]
  >(
    // oxfmt-ignore
    [
      ["identifies the caller if sub is missing", { client_id: "batch" }, undefined, "batch"],
      ["is ignored if sub is present", { sub: "ada", client_id: "batch" }, undefined, "ada"],
      ["does not replace an invalid sub", { sub: "", client_id: "batch" },
        '"sub" must be a string of 1 to 255 characters'],
      ["is required if sub is missing", {}, '"client_id" must be a string of 1 to 255 characters'],
      ["is rejected if its value exceeds 255 characters", { client_id: "c".repeat(256) },
        '"client_id" must be a string of 1 to 255 characters'],
      ["does not accept the inherited property constructor", { client_id: "batch" },
        '"constructor" must be a string of 1 to 255 characters', undefined, "constructor"],
    ],
  )("%s", async (_name, members, reason, subject, subjectClaim = "client_id") => {
    const want = reason === undefined ? { kind: "principal", subject } : { kind: "invalid", reason };
    expect(await outcomeOf(members, subjectClaim)).toMatchObject(want);
  });

  test("is off by default, so that a token without sub is rejected", async () => {
    const reason = 'the response has no "sub", and no other claim is configured';
    expect(await outcomeOf({ client_id: "batch" }, undefined)).toEqual({ kind: "invalid", reason });
  });
});
