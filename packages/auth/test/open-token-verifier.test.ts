import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import type { OperatorLog } from "../src/inputs/operator-log.ts";
import { openTokenVerifier, type TokenSources } from "../src/open-token-verifier.ts";
import { toStaticToken } from "../src/plain-tokens.ts";
import {
  digestOf,
  createVerifierChain,
  type KeysFetched,
  type TokenOutcome,
  type TokenVerifier,
} from "../src/token-verifier.ts";
import {
  createSigningKey,
  type IdentityProvider,
  type SigningKey,
  startIdentityProvider,
  testAudience,
} from "../../testing/src/auth/identity-provider.ts";
import { within } from "../../testing/src/deadline.ts";
import { runProgram } from "../../testing/src/process/child-program.ts";
import { quietLog } from "../../testing/src/operations/quiet-log.ts";
import { createTempFolder } from "../../testing/src/process/temp-folder.ts";

async function open(sources: TokenSources, log: OperatorLog = quietLog): Promise<TokenVerifier> {
  const opened = await openTokenVerifier(sources, log);
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
      introspection: { url: `${provider.issuer}/introspect`, clientId: "orders", clientSecretFile },
      tokenPrefix: "orders_",
    });
    const jwt = await provider.sign({ sub: "jwt" });
    provider.answer = (_request, response) => void response.end('{"active":true,"sub":"introspection"}');
    const outcomes = await Promise.all(
      ["of-the-configuration", "of-the-file", jwt, "opaque"].map((text) => outcomeOf(verifier, text)),
    );
    expect(await outcomeOf(verifier, `orders_${"0".repeat(57)}`)).toMatchObject({ kind: "invalid" });
    verifier.close?.();
    // The cheapest first, which also keeps a token from providers that have not issued it, even if it is mistyped.
    expect(provider.requests.filter((path) => path === "/introspect")).toHaveLength(1);
    expect(outcomes).toMatchObject(
      ["configuration", "file", "jwt", "introspection"].map((subject) => ({ kind: "principal", subject })),
    );
  });

  test.each([
    { name: "", names: undefined, want: [/^(?!tokens: ).*\/nowhere\/tokens/, /^the issuer a must/, /must use https/] },
    {
      name: ", each by its name",
      names: { tokenHashesFile: "tokens", jwt: "issuers", introspection: "endpoint" },
      want: [/^tokens: .*\/nowhere\/tokens/, /^issuers: the issuer a must have at least one audience, and no empty one/, /^endpoint: .* must use https/],
    },
  ])("tells what is wrong with all of them at once$name", async ({ names, want }) => {
    const opened = await openTokenVerifier(
      {
        tokenHashesFile: "/nowhere/tokens",
        jwt: [{ issuer: "a", audiences: [] }],
        introspection: { url: "http://id.example", clientId: "orders", clientSecretFile: "/nowhere/secret" },
        names,
      },
      quietLog,
    );
    const problems = want.map((pattern) => expect.stringMatching(pattern));
    expect(opened).toEqual({ kind: "problems", problems });
  });

  test("closes what was opened if the rest cannot be", async () => {
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    using other = await startIdentityProvider(await createSigningKey("ES256", "key"));
    const timing = { refreshMs: 1 };
    const jwtOf = ({ issuer, keysUrl }: IdentityProvider): TokenSources => ({
      jwt: [{ issuer, audiences: [testAudience], keys: { url: keysUrl }, timing }],
    });
    const twice = { jwt: [...(jwtOf(provider).jwt ?? []), { issuer: "urn:other", audiences: [] }] };
    for (const sources of [twice, { ...jwtOf(provider), tokenHashesFile: "/nowhere/tokens" }])
      expect(await openTokenVerifier(sources, quietLog)).toMatchObject({ kind: "problems" });
    const asked = provider.requests.length;
    const verifier = await open(jwtOf(other));
    for (let n = 0; n < 20; n += 1) await within(other.nextRequest(), "the refresh of another one");
    verifier.close?.();
    // One that was under way may come in late.
    expect(provider.requests.length - asked).toBeLessThan(3);
  });

  test("follows no source any more once it is closed", async () => {
    using folder = createTempFolder();
    const tokenHashesFile = folder.file("tokens");
    const keysFile = folder.file("keys");
    const clientSecretFile = folder.file("secret");
    const key = await createSigningKey("ES256", "key");
    const write = (name: string): void => {
      writeFileSync(tokenHashesFile, `sha256:${digestOf(name)} ${name} - -\n`);
      writeFileSync(keysFile, JSON.stringify({ name, keys: [key.jwk] }));
      writeFileSync(clientSecretFile, name);
    };
    write("first");
    const openLogged = async (messages: string[]): Promise<TokenVerifier> =>
      await open(
        {
          tokenHashesFile,
          jwt: [{ issuer: "urn:issuer", audiences: [testAudience], keys: { file: keysFile } }],
          introspection: { url: "http://127.0.0.1:1/introspect", clientId: "orders", clientSecretFile },
        },
        { info: (_fields, message) => messages.push(message), warn: (_fields, message) => messages.push(message) },
      );
    const heard: string[] = [];
    (await openLogged(heard)).close?.();
    // One that is opened later shows that both had the time to look.
    const heardLater: string[] = [];
    const later = await openLogged(heardLater);
    for (const [n, name] of ["second", "third"].entries()) {
      write(name);
      await expect.poll(() => heardLater.length).toBe(3 * (n + 1));
    }
    later.close?.();
    expect(heard).toEqual([]);
  });

  test("reads every source again when told to", async () => {
    using folder = createTempFolder();
    const tokenHashesFile = folder.file("tokens");
    const keysFile = folder.file("keys");
    const clientSecretFile = folder.file("secret");
    const [first, second] = await Promise.all(["first", "second"].map((id) => createSigningKey("ES256", id)));
    if (first === undefined || second === undefined) throw new Error("there are no keys");
    using provider = await startIdentityProvider(second);
    const write = (token: string, key: SigningKey, secret: string): void => {
      writeFileSync(tokenHashesFile, `sha256:${digestOf(token)} ${token} - -\n`);
      writeFileSync(keysFile, JSON.stringify({ keys: [key.jwk] }));
      writeFileSync(clientSecretFile, secret);
    };
    write("before", first, "s3cret-before");
    const verifier = await open({
      tokenHashesFile,
      jwt: [{ issuer: provider.issuer, audiences: [testAudience], keys: { file: keysFile } }],
      introspection: { url: `${provider.issuer}/introspect`, clientId: "orders", clientSecretFile },
    });
    const secrets: (string | undefined)[] = [];
    provider.answer = ({ headers }, response) => {
      secrets.push(headers.authorization);
      response.end('{"active":true,"sub":"ada"}');
    };
    write("after", second, "s3cret-after");
    await verifier.reload?.();
    const outcomes = await Promise.all(
      ["after", await provider.sign(), "opaque"].map((token) => outcomeOf(verifier, token)),
    );
    verifier.close?.();
    expect(outcomes).toMatchObject([{ subject: "after" }, { kind: "principal" }, { kind: "principal" }]);
    expect(secrets).toEqual([`Basic ${Buffer.from("orders:s3cret-after").toString("base64")}`]);
  });

  test("loads jose for JWTs alone, and does not keep a process that has nothing else to do", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), "");
    const sources: TokenSources = {
      tokenHashesFile: folder.file("file"),
      jwt: [{ issuer: "urn:away", audiences: ["a"], keys: { url: "http://127.0.0.1:1/keys" } }],
    };
    const program = `
      import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) { if (name === "jose") console.log("jose"); return next(name, context); } });
      const { openTokenVerifier } = await import(${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)});
      const log = { info() {}, warn() {} };
      for (const sources of [{ tokens: [] }, ${JSON.stringify(sources)}]) console.log((await openTokenVerifier(sources, log)).kind);`;
    const { exitCode, stdout } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
    expect({ exitCode, words: [...new Set(stdout.split("\n"))] }).toEqual({
      exitCode: 0,
      words: ["value", "jose", ""],
    });
    expect(stdout).toMatch(/value\n$/);
  });
});

/** Verifiers of which each knows one outcome, at once or by a promise, and which say that they were asked. */
const knowing = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: () => (log.push(name), outcome),
});
const asking = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: async () => (log.push(name), await Promise.resolve(outcome)),
});

describe("createVerifierChain", () => {
  const good: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
  const unknown: TokenOutcome = { kind: "unknown", reason: "?" };

  describe.each([
    { how: "at once", make: knowing },
    { how: "by a promise", make: asking },
  ])("over verifiers that answer $how", ({ make }) => {
    test.each<[name: string, first: TokenOutcome, want: TokenOutcome["kind"], asked: readonly string[]]>([
      ["asks the next one about a token that is unknown", unknown, "principal", ["first", "second"]],
      ["asks no further about a token that is known", good, "principal", ["first"]],
      ["asks no further about a token that is refused", { kind: "invalid", reason: "" }, "invalid", ["first"]],
      ["asks no further about a token that has expired", { kind: "expired", reason: "" }, "expired", ["first"]],
      [
        "asks no further about a token that cannot be checked",
        { kind: "unavailable", reason: "", retryAfterS: 1 },
        "unavailable",
        ["first"],
      ],
    ])("%s", async (_, first, want, asked) => {
      const log: string[] = [];
      const verifier = createVerifierChain([make(first, log, "first"), make(good, log, "second")]);
      expect((await outcomeOf(verifier, "token")).kind).toBe(want);
      expect(log).toEqual(asked);
    });
  });

  test("makes no promise when none of them does", () => {
    const verifier = createVerifierChain([knowing(unknown, [], ""), knowing(good, [], "")]);
    expect(verifier.verify({ text: "", digest: "" })).toEqual(good);
  });

  test("knows nothing where there is nobody to ask", async () => {
    expect(await outcomeOf(createVerifierChain([]), "token")).toMatchObject({ kind: "unknown" });
  });

  test("reloads and closes all of them", async () => {
    const done: string[] = [];
    const member = (name: string): TokenVerifier => ({
      verify: () => unknown,
      reload: async () => void (await Promise.resolve(), done.push(`${name} reloaded`)),
      close: () => void done.push(`${name} closed`),
    });
    const verifier = createVerifierChain([member("first"), { verify: () => unknown }, member("second")]);
    await verifier.reload?.();
    verifier.close?.();
    expect(done).toEqual(["first reloaded", "second reloaded", "first closed", "second closed"]);
  });

  test("tells when the keys of all were fetched", () => {
    const fetched: readonly KeysFetched[] = ["a", "b", "c"].map((issuer, atMs) => ({ issuer, atMs }));
    const members = [{ keysFetched: fetched.slice(0, 1) }, {}, { keysFetched: fetched.slice(1) }];
    const verifier = createVerifierChain(members.map((member) => ({ verify: () => unknown, ...member })));
    expect(verifier.keysFetched).toEqual(fetched);
  });

  test("tells the problems of all, and none when there is none", () => {
    const away = (problem: string | undefined): TokenVerifier => ({ verify: () => good, problem });
    expect(createVerifierChain([away("no keys"), away(undefined), away("no answer")]).problem).toBe(
      "no keys; no answer",
    );
    expect(createVerifierChain([away(undefined), away(undefined)]).problem).toBeUndefined();
  });
});
