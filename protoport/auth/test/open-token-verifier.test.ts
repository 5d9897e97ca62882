import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { OperatorLog } from "../src/inputs/reload-record.ts";
import { openTokenVerifier, type TokenSources } from "../src/open-token-verifier.ts";
import { toStaticToken } from "../src/plain-tokens.ts";
import { digestOf, createVerifierChain } from "../src/token-verifier.ts";
import type { KeysFetched, TokenOutcome, TokenVerifier } from "../src/token-verifier.ts";
// oxfmt-ignore
import { createSigningKey, createTempFolder, type IdentityProvider, quietLog, runProgram, type SigningKey,
  startIdentityProvider, testAudience, within } from "@protoport/testing/process";

async function open(sources: TokenSources, log: OperatorLog = quietLog): Promise<TokenVerifier> {
  const opened = await openTokenVerifier(sources, log);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  return opened.value;
}

const outcomeOf = async (verifier: TokenVerifier, text: string): Promise<TokenOutcome> =>
  await verifier.verify({ text, digest: digestOf(text) });

test("openTokenVerifier uses every configured source", async () => {
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
  provider.respond = (_request, response) => void response.end('{"active":true,"sub":"introspection"}');
  const tokens = ["of-the-configuration", "of-the-file", jwt, "opaque"];
  const outcomes = await Promise.all(tokens.map((text) => outcomeOf(verifier, text)));
  expect(await outcomeOf(verifier, `orders_${"0".repeat(57)}`)).toMatchObject({ kind: "invalid" });
  verifier.close?.();
  // Our own tokens, even mistyped ones, and JWTs are not sent to the introspection endpoint.
  expect(provider.requests.filter((path) => path === "/introspect")).toHaveLength(1);
  const subjects = ["configuration", "file", "jwt", "introspection"];
  expect(outcomes).toMatchObject(subjects.map((subject) => ({ kind: "principal", subject })));
});

test.each([
  { name: "", names: undefined, want: [/^(?!tokens: ).*\/nowhere\/tokens/, /^the issuer a must/, /must use https/] },
  {
    name: " with the sources' names",
    names: { tokenHashesFile: "tokens", jwt: "issuers", introspection: "endpoint" },
    want: [
      /^tokens: .*\/nowhere\/tokens/,
      /^issuers: the issuer a must have at least one audience, and no empty one/,
      /^endpoint: .* must use https/,
    ],
  },
])("openTokenVerifier reports all sources' problems$name in one list", async ({ names, want }) => {
  const introspection = { url: "http://id.example", clientId: "orders", clientSecretFile: "/nowhere/secret" };
  const jwt = [{ issuer: "a", audiences: [] }];
  const opened = await openTokenVerifier({ tokenHashesFile: "/nowhere/tokens", jwt, introspection, names }, quietLog);
  const problems = want.map((pattern) => expect.stringMatching(pattern));
  expect(opened).toEqual({ kind: "problems", problems });
});

test("openTokenVerifier closes the opened sources if another one has problems", async () => {
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  using other = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const timing = { refreshMs: 1 };
  const jwtOf = ({ issuer, keysUrl }: IdentityProvider): TokenSources => ({
    jwt: [{ issuer, audiences: [testAudience], keysUrl: keysUrl, timing }],
  });
  const twoIssuers = { jwt: [...(jwtOf(provider).jwt ?? []), { issuer: "urn:other", audiences: [] }] };
  for (const sources of [twoIssuers, { ...jwtOf(provider), tokenHashesFile: "/nowhere/tokens" }])
    expect(await openTokenVerifier(sources, quietLog)).toMatchObject({ kind: "problems" });
  const requestCount = provider.requests.length;
  const verifier = await open(jwtOf(other));
  for (let n = 0; n < 20; n += 1) await within(other.nextRequest(), "the refresh of another one");
  verifier.close?.();
  // Requests that were in flight may still arrive.
  expect(provider.requests.length - requestCount).toBeLessThan(3);
});

test("openTokenVerifier does not reload any source after close", async () => {
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
  const openLogged = async (messages: string[]): Promise<TokenVerifier> => {
    const log = (_fields: object, message: string) => messages.push(message);
    const jwt = [{ issuer: "urn:issuer", audiences: [testAudience], keysFile }];
    const introspection = { url: "http://127.0.0.1:1/introspect", clientId: "orders", clientSecretFile };
    return await open({ tokenHashesFile, jwt, introspection }, { info: log, warn: log });
  };
  const logged: string[] = [];
  (await openLogged(logged)).close?.();
  // A later verifier's check shows that the closed verifier had time for a check.
  const loggedLater: string[] = [];
  const later = await openLogged(loggedLater);
  for (const [n, name] of ["second", "third"].entries()) {
    write(name);
    await expect.poll(() => loggedLater.length).toBe(3 * (n + 1));
  }
  later.close?.();
  expect(logged).toEqual([]);
});

test("reload reads every source again", async () => {
  using folder = createTempFolder();
  const tokenHashesFile = folder.file("tokens");
  const keysFile = folder.file("keys");
  const clientSecretFile = folder.file("secret");
  const [first, second] = await Promise.all(["first", "second"].map((id) => createSigningKey("ES256", id)));
  if (first === undefined || second === undefined) throw new Error("the keys are missing");
  using provider = await startIdentityProvider(second);
  const write = (token: string, key: SigningKey, secret: string): void => {
    writeFileSync(tokenHashesFile, `sha256:${digestOf(token)} ${token} - -\n`);
    writeFileSync(keysFile, JSON.stringify({ keys: [key.jwk] }));
    writeFileSync(clientSecretFile, secret);
  };
  write("before", first, "s3cret-before");
  const verifier = await open({
    tokenHashesFile,
    jwt: [{ issuer: provider.issuer, audiences: [testAudience], keysFile: keysFile }],
    introspection: { url: `${provider.issuer}/introspect`, clientId: "orders", clientSecretFile },
  });
  const secrets: (string | undefined)[] = [];
  provider.respond = ({ headers }, response) => {
    secrets.push(headers.authorization);
    response.end('{"active":true,"sub":"ada"}');
  };
  write("after", second, "s3cret-after");
  await verifier.reload?.();
  const tokens = ["after", await provider.sign(), "opaque"];
  const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
  verifier.close?.();
  expect(outcomes).toMatchObject([{ subject: "after" }, { kind: "principal" }, { kind: "principal" }]);
  expect(secrets).toEqual([`Basic ${Buffer.from("orders:s3cret-after").toString("base64")}`]);
});

test("openTokenVerifier imports jose only for JWTs, and does not keep the process alive", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("file"), "");
  const jwt = [{ issuer: "urn:unavailable", audiences: ["a"], keysUrl: "http://127.0.0.1:1/keys" }];
  const sources: TokenSources = { tokenHashesFile: folder.file("file"), jwt };
  const program = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) { if (name === "jose") console.log("jose"); return next(name, context); } });
    const { openTokenVerifier } = await import(${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)});
    const log = { info() {}, warn() {} };
    for (const sources of [{ tokens: [] }, ${JSON.stringify(sources)}]) console.log((await openTokenVerifier(sources, log)).kind);`;
  const { exitCode, stdout } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
  expect({ exitCode, words: [...new Set(stdout.split("\n"))] }).toEqual({ exitCode: 0, words: ["value", "jose", ""] });
  expect(stdout).toMatch(/value\n$/);
});

/** Creates a verifier that returns a fixed outcome, or a promise for it, and logs its name when called. */
const synchronous = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: () => (log.push(name), outcome),
});
const asynchronous = (outcome: TokenOutcome, log: string[], name: string): TokenVerifier => ({
  verify: async () => (log.push(name), await Promise.resolve(outcome)),
});

describe("createVerifierChain", () => {
  const good: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
  const unknown: TokenOutcome = { kind: "unknown", reason: "?" };

  describe.each([
    { how: "synchronously", make: synchronous },
    { how: "with a promise", make: asynchronous },
  ])("with verifiers that respond $how", ({ make }) => {
    test.each<[name: string, first: TokenOutcome, want: TokenOutcome["kind"], calls: readonly string[]]>(
      // oxfmt-ignore
      [
        ["calls the next verifier for an unknown token", unknown, "principal", ["first", "second"]],
        ["stops at the first verifier that accepts the token", good, "principal", ["first"]],
        ["stops at the first verifier that rejects the token", { kind: "invalid", reason: "" }, "invalid", ["first"]],
        ["stops at the first verifier that reports an expired token", { kind: "expired", reason: "" }, "expired",
          ["first"]],
        ["stops at the first verifier that is unavailable", { kind: "unavailable", reason: "", retryAfterS: 1 },
          "unavailable", ["first"]],
      ],
    )("%s", async (_, first, want, calls) => {
      const called: string[] = [];
      const verifier = createVerifierChain([make(first, called, "first"), make(good, called, "second")]);
      expect((await outcomeOf(verifier, "token")).kind).toBe(want);
      expect(called).toEqual(calls);
    });
  });

  test("responds synchronously if its verifiers do", () => {
    const verifier = createVerifierChain([synchronous(unknown, [], ""), synchronous(good, [], "")]);
    expect(verifier.verify({ text: "", digest: "" })).toEqual(good);
  });

  test("returns unknown without verifiers", async () =>
    expect(await outcomeOf(createVerifierChain([]), "token")).toMatchObject({ kind: "unknown" }));

  test("reloads and closes all verifiers", async () => {
    const calls: string[] = [];
    const member = (name: string): TokenVerifier => ({
      verify: () => unknown,
      reload: async () => void (await Promise.resolve(), calls.push(`${name} reloaded`)),
      close: () => void calls.push(`${name} closed`),
    });
    const verifier = createVerifierChain([member("first"), { verify: () => unknown }, member("second")]);
    await verifier.reload?.();
    verifier.close?.();
    expect(calls).toEqual(["first reloaded", "second reloaded", "first closed", "second closed"]);
  });

  test("returns the fetch times of all verifiers' keys", () => {
    const fetched: readonly KeysFetched[] = ["a", "b", "c"].map((issuer, atMs) => ({ issuer, atMs }));
    const members = [{ keysFetched: fetched.slice(0, 1) }, {}, { keysFetched: fetched.slice(1) }];
    const verifier = createVerifierChain(members.map((member) => ({ verify: () => unknown, ...member })));
    expect(verifier.keysFetched).toEqual(fetched);
  });

  test("joins the problems of all verifiers", () => {
    const withProblem = (problem: string | undefined): TokenVerifier => ({ verify: () => good, problem });
    const verifiers = ["no keys", undefined, "no response"].map(withProblem);
    expect(createVerifierChain(verifiers).problem).toBe("no keys; no response");
    expect(createVerifierChain([withProblem(undefined), withProblem(undefined)]).problem).toBeUndefined();
  });
});
