import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { openTokenVerifier, type TokenSources } from "../../src/auth/open-token-verifier.ts";
import { toStaticToken } from "../../src/auth/plain-tokens.ts";
import { digestOf, firstKnowing, type TokenOutcome, type TokenVerifier } from "../../src/auth/token-verifier.ts";
import { createSigningKey, startIdentityProvider, testAudience } from "../support/identity-provider.ts";
import { quietLog } from "../support/quiet-log.ts";
import { createTempFolder } from "../support/temp-folder.ts";

async function open(sources: TokenSources): Promise<TokenVerifier> {
  const opened = await openTokenVerifier(sources, quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  return opened.value;
}

async function outcomeOf(verifier: TokenVerifier, text: string): Promise<TokenOutcome> {
  return await verifier.verify({ text, digest: digestOf(text) });
}

describe("openTokenVerifier", () => {
  test("asks every source that is configured", async () => {
    using folder = createTempFolder();
    const tokenHashesFile = folder.file("tokens");
    const clientSecretFile = folder.file("secret");
    writeFileSync(tokenHashesFile, `sha256:${digestOf("of-the-file")} file - -\n`);
    writeFileSync(clientSecretFile, "secret");
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    const verifier = await open({
      tokens: [toStaticToken("configuration", "of-the-configuration")],
      tokenHashesFile,
      jwt: [{ issuer: provider.issuer, audiences: [testAudience] }],
      introspection: { url: `${provider.issuer}/introspect`, clientId: "plants", clientSecretFile },
    });
    const jwt = await provider.sign({ sub: "jwt" });
    provider.answer = (_request, response) => void response.end('{"active":true,"sub":"introspection"}');
    const outcomes = await Promise.all(
      ["of-the-configuration", "of-the-file", jwt, "opaque"].map((text) => outcomeOf(verifier, text)),
    );
    verifier.close?.();
    expect(outcomes).toMatchObject(
      ["configuration", "file", "jwt", "introspection"].map((subject) => ({ kind: "principal", subject })),
    );
  });

  test("tells what is wrong with all of them at once", async () => {
    const opened = await openTokenVerifier(
      {
        tokenHashesFile: "/nowhere/tokens",
        jwt: [{ issuer: "a", audiences: [] }],
        introspection: { url: "http://id.example", clientId: "plants", clientSecretFile: "/nowhere/secret" },
      },
      quietLog,
    );
    const problems = [/\/nowhere\/tokens/, /needs an audience/, /is not https/].map((pattern) =>
      expect.stringMatching(pattern),
    );
    expect(opened).toEqual({ kind: "problems", problems });
  });

  test("does not load jose for a server that takes no JWT", () => {
    const program = `
      import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) { if (name === "jose") console.log("jose"); return next(name, context); } });
      const { openTokenVerifier } = await import(${JSON.stringify(new URL("../../src/auth/index.ts", import.meta.url).href)});
      await openTokenVerifier({ tokens: [] }, console);
      console.log("opened");`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" });
    expect(stdout).toBe("opened\n");
  });
});

/** Verifiers of which each knows one outcome, at once or by a promise, and which say that they were asked. */
const knowing = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: () => (log.push(name), outcome),
});
const asking = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: async () => (log.push(name), await Promise.resolve(outcome)),
});

describe("firstKnowing", () => {
  const good: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
  const unknown: TokenOutcome = { kind: "unknown", reason: "?" };

  describe.each([
    { how: "at once", make: knowing },
    { how: "by a promise", make: asking },
  ])("over verifiers that answer $how", ({ make }) => {
    test.each<{ name: string; first: TokenOutcome; want: TokenOutcome["kind"]; asked: readonly string[] }>([
      {
        name: "asks the next one about a token that is unknown",
        first: unknown,
        want: "principal",
        asked: ["first", "second"],
      },
      { name: "asks no further about a token that is known", first: good, want: "principal", asked: ["first"] },
      {
        name: "asks no further about a token that is refused",
        first: { kind: "invalid", reason: "" },
        want: "invalid",
        asked: ["first"],
      },
      {
        name: "asks no further about a token that has expired",
        first: { kind: "expired", reason: "" },
        want: "expired",
        asked: ["first"],
      },
      {
        name: "asks no further about a token that cannot be checked",
        first: { kind: "unavailable", reason: "", retryAfterS: 1 },
        want: "unavailable",
        asked: ["first"],
      },
    ])("$name", async ({ first, want, asked }) => {
      const log: string[] = [];
      const verifier = firstKnowing([make(first, log, "first"), make(good, log, "second")]);
      expect((await outcomeOf(verifier, "token")).kind).toBe(want);
      expect(log).toEqual(asked);
    });
  });

  test("makes no promise when none of them does", () => {
    const verifier = firstKnowing([knowing(unknown, [], ""), knowing(good, [], "")]);
    expect(verifier.verify({ text: "", digest: "" })).toEqual(good);
  });

  test("knows nothing where there is nobody to ask", async () => {
    expect(await outcomeOf(firstKnowing([]), "token")).toMatchObject({ kind: "unknown" });
  });

  test("tells the problems of all, and none when there is none", () => {
    const away = (problem: string | undefined): TokenVerifier => ({ verify: () => good, problem });
    expect(firstKnowing([away("no keys"), away(undefined), away("no answer")]).problem).toBe("no keys; no answer");
    expect(firstKnowing([away(undefined)]).problem).toBeUndefined();
  });
});
