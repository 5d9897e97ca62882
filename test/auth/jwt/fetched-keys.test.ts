import { describe, expect, test } from "vitest";

import type { AuthLog } from "../../../src/auth/auth-log.ts";
import { openJwtVerifier, type JwtSource } from "../../../src/auth/jwt/open-jwt-verifier.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../../src/auth/token-verifier.ts";
import { within } from "../../support/deadline.ts";
import {
  createSigningKey,
  startIdentityProvider,
  testAudience,
  type IdentityProvider,
} from "../../support/identity-provider.ts";
import { quietLog } from "../../support/quiet-log.ts";

const hourMs = 3_600_000;

/** Only what a test asks for is fetched: the timer of the background does not come in between. */
const byDemand = { refreshMs: hourMs, backOffMs: hourMs, backOffMaxMs: hourMs };

async function open(
  source: Partial<JwtSource> & { issuer: string },
  log: AuthLog = quietLog,
): Promise<TokenVerifier & Disposable> {
  const result = await openJwtVerifier([{ audiences: [testAudience], timing: byDemand, ...source }], log);
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  // Members are handed on by getters: `problem` changes.
  return Object.assign(Object.create(result.value), { [Symbol.dispose]: () => result.value.close?.() });
}

async function outcomeOf(verifier: TokenVerifier, token: string): Promise<TokenOutcome> {
  return await within(Promise.resolve(verifier.verify({ text: token, digest: digestOf(token) })), "the outcome");
}

async function startProvider(keyId = "first"): Promise<IdentityProvider> {
  return await startIdentityProvider(await createSigningKey("ES256", keyId));
}

describe("keys that a provider publishes", () => {
  test.each([
    { name: "where the OpenID metadata says", hide: [], want: ["/.well-known/openid-configuration", "/keys"] },
    {
      name: "where the OAuth metadata says (RFC 8414)",
      hide: ["/.well-known/openid-configuration"],
      want: ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/keys"],
    },
  ])("are found $name", async ({ hide, want }) => {
    using provider = await startProvider();
    provider.hidden = hide;
    using verifier = await open({ issuer: provider.issuer });
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(provider.requests).toEqual(want);
  });

  test("are fetched at the URL that is configured, without discovery", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: "urn:issuer", keys: { url: provider.keysUrl } });
    expect(await outcomeOf(verifier, await provider.sign({ iss: "urn:issuer" }))).toMatchObject({ kind: "principal" });
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("are fetched once for any number of tokens", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => provider.sign({ jti: String(n) })));
    const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["principal"]));
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("are fetched anew in the background, without any request", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl }, timing: { refreshMs: 1 } });
    await within(provider.nextRequest(), "the refresh");
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  });
});

describe("a token that names an unknown key", () => {
  test("is good once the provider publishes the key", async () => {
    using provider = await startProvider();
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, coolDownMs: 0 },
    });
    const second = await createSigningKey("ES256", "second");
    provider.keys = [...provider.keys, second];
    expect(await outcomeOf(verifier, await provider.sign({}, {}, second))).toMatchObject({ kind: "principal" });
  });

  test("makes one fetch, however many come at once", async () => {
    using provider = await startProvider();
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, coolDownMs: 0 },
    });
    const stranger = await createSigningKey("ES256", "stranger");
    const tokens = await Promise.all(
      Array.from({ length: 200 }, (_, n) => provider.sign({ jti: String(n) }, {}, stranger)),
    );
    const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["invalid"]));
    expect(provider.requests).toEqual(["/keys", "/keys"]);
  });

  test("makes no fetch within the cool-down", async () => {
    using provider = await startProvider();
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, coolDownMs: hourMs },
    });
    const token = await provider.sign({}, { kid: "stranger" });
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("is not called bad while the provider is away", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    provider.stop();
    await verifier.reload?.();
    const outcome = await outcomeOf(verifier, await provider.sign({}, { kid: "stranger" }));
    expect(outcome).toMatchObject({ kind: "unavailable", retryAfterS: expect.any(Number) });
  });

  test("is called bad again once the provider is back", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    provider.answer = (_request, response) => void response.writeHead(503).end();
    await verifier.reload?.();
    provider.answer = undefined;
    await verifier.reload?.();
    expect(await outcomeOf(verifier, await provider.sign({}, { kid: "stranger" }))).toMatchObject({ kind: "invalid" });
  });
});

describe("a provider that goes away", () => {
  test("takes no known key with it: new tokens and old ones stay good, and the server stays ready", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    const old = await provider.sign({ jti: "old" });
    expect(await outcomeOf(verifier, old)).toMatchObject({ kind: "principal" });
    provider.stop();
    await verifier.reload?.();
    expect(await outcomeOf(verifier, old)).toMatchObject({ kind: "principal" });
    expect(await outcomeOf(verifier, await provider.sign({ jti: "new" }))).toMatchObject({ kind: "principal" });
    expect(verifier.problem).toBeUndefined();
  });

  test("makes tokens unverifiable, not bad, once its keys are too old", async () => {
    using provider = await startProvider();
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, usableMs: 0 },
    });
    provider.stop();
    await verifier.reload?.();
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "unavailable" });
    expect(verifier.problem).toContain(`no usable keys of ${provider.issuer}: `);
  });

  test("is asked again after a while, without any request, and is back then", async () => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.writeHead(503).end();
    const changed = Promise.withResolvers<void>();
    const log: AuthLog = {
      warn: () => {},
      info: (_fields, message) => message === "keys changed" && changed.resolve(),
    };
    using verifier = await open(
      { issuer: provider.issuer, keys: { url: provider.keysUrl }, timing: { backOffMs: 1, backOffMaxMs: 1 } },
      log,
    );
    provider.answer = undefined;
    await within(changed.promise, "the keys");
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(verifier.problem).toBeUndefined();
  });

  test("is not asked by requests while the next time to ask is set", async () => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.writeHead(503).end();
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, coolDownMs: 0 },
    });
    const outcomes = await Promise.all(
      [1, 2, 3].map(async (n) => await outcomeOf(verifier, await provider.sign({ jti: String(n) }))),
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(provider.requests).toEqual(["/keys"]);
  });
});

describe("keys that did not change", () => {
  test("leave every token known that they verified", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    const text = await provider.sign();
    await outcomeOf(verifier, text);
    await verifier.reload?.();
    expect(provider.requests).toEqual(["/keys", "/keys"]);
    expect(verifier.verify({ text, digest: digestOf(text) })).toMatchObject({ kind: "principal" });
  });
});

describe("keys that are withdrawn", () => {
  test("take every token that they verified with them", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl } });
    const token = await provider.sign();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
    provider.keys = [await createSigningKey("ES256", "second")];
    await verifier.reload?.();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
  });

  test("change while requests run, and no good token is refused", async () => {
    using provider = await startProvider("key-0");
    using verifier = await open({
      issuer: provider.issuer,
      keys: { url: provider.keysUrl },
      timing: { ...byDemand, coolDownMs: 0 },
    });
    const outcomes: Promise<TokenOutcome>[] = [];
    for (const n of [1, 2, 3, 4]) {
      const fresh = await createSigningKey("ES256", `key-${n}`);
      // A provider publishes the next key beside the last one.
      provider.keys = [...provider.keys.slice(-1), fresh];
      const tokens = await Promise.all(
        Array.from({ length: 20 }, (_, jti) => provider.sign({ jti: String(jti) }, {}, fresh)),
      );
      outcomes.push(...tokens.map((token) => outcomeOf(verifier, token)));
    }
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(["principal"]));
  });
});

describe("a provider that misbehaves", () => {
  const hundredMegabytes = 100 * 1024 * 1024;

  // Side by side: two of them wait for the end of an answer that never ends.
  test.concurrent.each<{ name: string; answer: NonNullable<IdentityProvider["answer"]>; want: RegExp }>([
    { name: "never answers", answer: () => {}, want: /timeout/i },
    {
      name: "never ends its answer",
      answer: (_request, response) =>
        void response.writeHead(200, { "content-type": "application/json" }).write('{"keys":['),
      want: /timeout/i,
    },
    {
      name: "redirects",
      answer: (_request, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/keys" }).end(),
      want: /\/keys answered 302$/,
    },
    {
      name: "says that it is going to send 100 MB",
      answer: (_request, response) => {
        response.writeHead(200, { "content-length": hundredMegabytes });
        response.write(Buffer.alloc(1024 * 1024, 0x20));
      },
      want: /answered more than 524288 bytes$/,
    },
    {
      name: "answers with HTML",
      answer: (_request, response) => void response.end("<!doctype html><p>Sign in"),
      want: /is not JSON$/,
    },
    {
      name: "answers with an array",
      answer: (_request, response) => void response.end("[]"),
      want: /is not a JSON object$/,
    },
    {
      name: "answers with bytes that are not UTF-8",
      answer: (_request, response) => void response.end(Buffer.from('{"keys":[],"x":"\u00ff"}', "latin1")),
      want: /not valid for encoding utf-8$/,
    },
    { name: "answers with nothing", answer: (_request, response) => void response.end(), want: /is not JSON$/ },
    {
      name: "has a secret for a key",
      answer: (_request, response) => void response.end('{"keys":[{"kty":"oct","k":"AAAA","kid":"first"}]}'),
      want: /none of the 1 keys/,
    },
    {
      name: "has keys that are no object",
      answer: (_request, response) => void response.end('{"keys":{"kid":1}}'),
      want: /no array "keys"/,
    },
    { name: "cuts the connection", answer: (request) => void request.socket.destroy(), want: /./ },
    { name: "fails", answer: (_request, response) => void response.writeHead(500).end("oops"), want: /answered 500$/ },
  ])("that $name leaves the last keys in use, and the log says why", async ({ answer, want }) => {
    using provider = await startProvider();
    const warnings: object[] = [];
    const log: AuthLog = { info: () => {}, warn: (fields) => warnings.push(fields) };
    // Long enough for an answer that comes, on a machine that is busy; a hanging one costs this once.
    const timing = { ...byDemand, fetchMs: 1_000 };
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl }, timing }, log);
    provider.answer = answer;
    await within(Promise.resolve(verifier.reload?.()), "the end of the fetch");
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(warnings).toEqual([
      { issuer: provider.issuer, failures: 1, keysInUse: 1, problem: expect.stringMatching(want) },
    ]);
  });

  test("that says there are no keys withdraws them all: no token is taken that they signed", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: provider.issuer, keys: { url: provider.keysUrl }, timing: byDemand });
    const token = await provider.sign();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
    provider.answer = (_request, response) => void response.end('{"keys":[]}');
    await verifier.reload?.();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable" });
    expect(verifier.problem).toBe(`${provider.issuer} has withdrawn all its keys`);
  });

  test.each<{ name: string; document: (provider: IdentityProvider) => object; want: RegExp }>([
    {
      name: "of another issuer",
      document: ({ keysUrl }) => ({ issuer: "https://evil.example", jwks_uri: keysUrl }),
      want: /metadata of another issuer/,
    },
    { name: "without the place of the keys", document: ({ issuer }) => ({ issuer }), want: /has no "jwks_uri"/ },
    {
      name: "with keys over plain HTTP",
      document: ({ issuer }) => ({ issuer, jwks_uri: "http://keys.example/" }),
      want: /is not https/,
    },
  ])("that has metadata $name is not believed", async ({ document, want }) => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.end(JSON.stringify(document(provider)));
    using verifier = await open({ issuer: provider.issuer });
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "unavailable" });
    expect(verifier.problem).toMatch(want);
  });
});
