import { once } from "node:events";
import { describe, expect, test } from "vitest";

import type { OperatorLog } from "../../../../src/operators/inputs/operator-log.ts";
import { openFetchedKeys } from "../../../../src/operators/auth/jwt/fetched-keys.ts";
import { openJwtVerifier, type JwtSource } from "../../../../src/operators/auth/jwt/open-jwt-verifier.ts";
import { notParsed } from "../../../../src/operators/inputs/parse-result.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../../../src/operators/auth/token-verifier.ts";
import { within } from "../../../support/deadline.ts";
import {
  createSigningKey,
  startIdentityProvider,
  startIdentityProviderAt,
  testAudience,
  type IdentityProvider,
} from "../../../support/auth/identity-provider.ts";
import { quietLog } from "../../../support/operations/quiet-log.ts";

const hourMs = 3_600_000;

/** Only what a test asks for is fetched: the timer of the background does not come in between. */
const byDemand = { refreshMs: hourMs, backOffMs: hourMs, backOffMaxMs: hourMs, fetchMs: hourMs };

async function open(
  source: Partial<JwtSource> & { issuer: string },
  log: OperatorLog = quietLog,
): Promise<TokenVerifier & Disposable> {
  const result = await openJwtVerifier([{ audiences: [testAudience], timing: byDemand, ...source }], log);
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  // Members are handed on by getters: `problem` changes.
  return Object.assign(Object.create(result.value), { [Symbol.dispose]: () => result.value.close?.() });
}

/** The verifier of the tokens of a provider, whose keys are fetched without discovery. */
function openAt({ issuer, keysUrl }: IdentityProvider, timing: JwtSource["timing"] = byDemand, log?: OperatorLog) {
  return open({ issuer, keys: { url: keysUrl }, timing }, log);
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

  test("are found where the metadata of an issuer with a path says, with a slash at its end or without", async () => {
    const hidden = "/realms/plants/.well-known/openid-configuration";
    for (const issuer of ["/realms/plants", "/realms/plants/"]) {
      const key = await createSigningKey("ES256", "first");
      using provider = await startIdentityProviderAt({ issuer, keys: "/keys" }, key);
      provider.hidden = [hidden];
      using verifier = await open({ issuer: provider.issuer });
      expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
      expect(provider.requests).toEqual([hidden, "/.well-known/oauth-authorization-server/realms/plants", "/keys"]);
    }
  });

  test("are fetched at the URL that is configured, without discovery", async () => {
    using provider = await startProvider();
    using verifier = await open({ issuer: "urn:issuer", keys: { url: provider.keysUrl } });
    expect(await outcomeOf(verifier, await provider.sign({ iss: "urn:issuer" }))).toMatchObject({ kind: "principal" });
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("are fetched once for any number of tokens", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => provider.sign({ jti: String(n) })));
    const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["principal"]));
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("are fetched anew in the background, without any request", async () => {
    using provider = await startProvider();
    const timing = { refreshMs: 1, backOffMs: hourMs, backOffMaxMs: hourMs };
    using verifier = await openAt(provider, timing);
    await within(provider.nextRequest(), "the refresh");
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  });
});

describe("keys that are fetched in the background", () => {
  test("are fetched once each time, however often they were asked for in between", async () => {
    using provider = await startProvider();
    const gaps: number[] = [];
    const document = JSON.stringify({ keys: provider.keys.map(({ jwk }) => jwk) });
    let answeredAtMs = Number.NEGATIVE_INFINITY;
    provider.answer = (_request, response) => {
      gaps.push(performance.now() - answeredAtMs);
      response.end(document, () => (answeredAtMs = performance.now()));
    };
    const timing = { refreshMs: 80 };
    using verifier = await openAt(provider, timing);
    for (let n = 0; n < 20; n += 1) await verifier.reload?.();
    const asked = provider.requests.length;
    for (let n = 0; n < 5; n += 1) await within(provider.nextRequest(), "the refresh");
    // Three quarters of the time at least; by the clock of a timer, which rounds.
    expect(Math.min(...gaps.slice(asked, asked + 5))).toBeGreaterThan(55);
  });

  test("are fetched no more once they are closed, and what is under way ends without a word", async () => {
    using provider = await startProvider();
    using other = await startProvider();
    const warnings: object[] = [];
    const log: OperatorLog = { info: () => {}, warn: (fields) => warnings.push(fields) };
    const timing = { refreshMs: 1, fetchMs: hourMs };
    const verifier = await openAt(provider, timing, log);
    provider.answer = () => {};
    await within(provider.nextRequest(), "the refresh");
    const reloaded = verifier.reload?.();
    verifier.close?.();
    await within(Promise.resolve(reloaded), "the end of the fetch");
    const asked = provider.requests.length;
    // Another one shows that there was time for more.
    using _ = await openAt(other, timing);
    for (let n = 0; n < 10; n += 1) await within(other.nextRequest(), "the refresh of another one");
    expect({ asked: provider.requests.length, warnings }).toEqual({ asked, warnings: [] });
  });
});

test("keys that are closed at rest are not asked for again", async () => {
  using other = await startProvider();
  let asked = 0;
  const keys = await openFetchedKeys({
    issuer: "urn:issuer",
    url: new URL("https://id.example"),
    algorithms: ["ES256"],
    log: quietLog,
    timing: { backOffMs: 1 },
    fetchDocument: async () => {
      asked += 1;
      return notParsed("it is away");
    },
  });
  keys.close();
  // Another one shows that there was time for more.
  using _ = await openAt(other, { refreshMs: 1 });
  for (let n = 0; n < 10; n += 1) await within(other.nextRequest(), "the refresh of another one");
  expect(asked).toBe(1);
  // A caller that has to come back is told whole seconds, and at least one, though the time is over.
  expect(keys.retryAfterS).toBe(1);
});

test("keys that are closed while they are fetched are not asked for again", async () => {
  using other = await startProvider();
  let asked = 0;
  const keys = await openFetchedKeys({
    issuer: "urn:issuer",
    url: new URL("https://id.example"),
    algorithms: ["ES256"],
    log: quietLog,
    timing: { refreshMs: 1, backOffMs: 1, fetchMs: hourMs },
    fetchDocument: async (signal) => {
      asked += 1;
      if (asked > 1 && !signal.aborted) await once(signal, "abort");
      return notParsed("it was closed");
    },
  });
  await expect.poll(() => asked).toBe(2);
  keys.close();
  // Another one shows that there was time for more.
  using _ = await openAt(other, { refreshMs: 1 });
  for (let n = 0; n < 10; n += 1) await within(other.nextRequest(), "the refresh of another one");
  expect(asked).toBe(2);
});

describe("a token that names an unknown key", () => {
  test("is good once the provider publishes the key", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider, { ...byDemand, coolDownMs: 0 });
    const second = await createSigningKey("ES256", "second");
    provider.keys = [...provider.keys, second];
    expect(await outcomeOf(verifier, await provider.sign({}, {}, second))).toMatchObject({ kind: "principal" });
  });

  test("makes one fetch, however many come at once", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider, { ...byDemand, coolDownMs: 0 });
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
    using verifier = await openAt(provider, { ...byDemand, coolDownMs: hourMs });
    const token = await provider.sign({}, { kid: "stranger" });
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
    expect(provider.requests).toEqual(["/keys"]);
  });

  test("is not called bad while the provider is away", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
    provider.stop();
    await verifier.reload?.();
    const outcome = await outcomeOf(verifier, await provider.sign({}, { kid: "stranger" }));
    expect(outcome).toMatchObject({ kind: "unavailable", retryAfterS: expect.any(Number) });
  });

  test("is called bad again once the provider is back", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
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
    using verifier = await openAt(provider);
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
    using verifier = await openAt(provider, { ...byDemand, usableMs: 0 });
    const token = await provider.sign();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
    provider.stop();
    await verifier.reload?.();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable" });
    expect(verifier.problem).toContain(`no usable keys of ${provider.issuer}: `);
  });

  test("has its keys used again once the same ones were fetched anew", async () => {
    using provider = await startProvider();
    const timing = { ...byDemand, usableMs: 300 };
    using verifier = await openAt(provider, timing);
    await expect.poll(() => verifier.problem).toMatch(/^no usable keys/);
    const problem = async (): Promise<string | undefined> => (await verifier.reload?.(), verifier.problem);
    await expect.poll(problem).toBeUndefined();
  });

  test("is left alone for twice as long after each failure, up to a bound, and replicas do not ask together", async () => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.writeHead(503).end();
    const second = 1000;
    const timing = { ...byDemand, backOffMs: 1000 * second, backOffMaxMs: 6000 * second };
    const replicas = await Promise.all(Array.from({ length: 5 }, () => openAt(provider, timing)));
    const token = await provider.sign();
    for (const mostS of [1000, 2000, 4000, 6000, 6000]) {
      const waits = await Promise.all(
        replicas.map(async (replica) => {
          const outcome = await outcomeOf(replica, token);
          await replica.reload?.();
          return outcome.kind === "unavailable" ? outcome.retryAfterS : 0;
        }),
      );
      expect(Math.max(...waits)).toBeLessThanOrEqual(mostS);
      expect(Math.min(...waits)).toBeGreaterThan(0.75 * mostS - 100);
      expect(new Set(waits).size).toBeGreaterThan(1);
    }
    for (const replica of replicas) replica[Symbol.dispose]();
  });

  test("that is away again after it was back is left alone no longer than at first, and told of again", async () => {
    using provider = await startProvider();
    const messages: string[] = [];
    const failures: unknown[] = [];
    const log: OperatorLog = {
      info: (_, message) => void messages.push(message),
      warn: (fields, message) => {
        messages.push(message);
        failures.push("failures" in fields && fields.failures);
      },
    };
    const timing = { ...byDemand, backOffMs: 1_000_000, backOffMaxMs: 6_000_000 };
    using verifier = await openAt(provider, timing, log);
    const token = await provider.sign({}, { kid: "unknown" });
    const { answer } = provider;
    for (let outage = 0; outage < 2; outage += 1) {
      provider.answer = (_request, response) => void response.writeHead(503).end();
      for (const _ of [1, 2]) await verifier.reload?.();
      provider.answer = answer;
      await verifier.reload?.();
    }
    provider.answer = (_request, response) => void response.writeHead(503).end();
    await verifier.reload?.();
    const outcome = await outcomeOf(verifier, token);
    expect(outcome).toMatchObject({ kind: "unavailable" });
    expect(outcome.kind === "unavailable" && outcome.retryAfterS).toBeLessThanOrEqual(1_000);
    expect(failures).toEqual([1, 2, 1, 2, 1]);
    const away = "keys cannot be fetched";
    const back = "keys can be fetched again";
    expect(messages).toEqual(["keys changed", away, away, back, away, away, back, away]);
  });

  test("is asked again after a while, without any request, and is back then", async () => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.writeHead(503).end();
    const { issuer } = provider;
    const changed = Promise.withResolvers<object>();
    const warnings: object[] = [];
    const reported: unknown[] = [];
    const log: OperatorLog = {
      warn: (fields) => warnings.push(fields),
      info: (fields, message) => {
        reported.push([fields, message]);
        if (message === "keys changed") changed.resolve(fields);
      },
    };
    using verifier = await openAt(provider, { backOffMs: 1, backOffMaxMs: 1 }, log);
    expect(verifier.keysFetched).toEqual([]);
    provider.answer = undefined;
    expect(await within(changed.promise, "the keys")).toEqual({ issuer, keys: 1 });
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(warnings[0]).toMatchObject({ failures: 1, keysInUse: 0 });
    expect(verifier.keysFetched).toEqual([{ issuer, atMs: expect.any(Number) }]);
    await verifier.reload?.();
    expect(reported).toEqual([
      [{ issuer, keys: 1 }, "keys changed"],
      [{ issuer }, "keys can be fetched again"],
    ]);
    expect(verifier.problem).toBeUndefined();
  });

  test("is not asked by requests while the next time to ask is set", async () => {
    using provider = await startProvider();
    provider.answer = (_request, response) => void response.writeHead(503).end();
    using verifier = await openAt(provider, { ...byDemand, coolDownMs: 0 });
    const outcomes = await Promise.all(
      [1, 2, 3].map(async (n) => await outcomeOf(verifier, await provider.sign({ jti: String(n) }))),
    );
    const reason = expect.stringMatching(/answered 503$/);
    expect(outcomes).toEqual(outcomes.map(() => ({ kind: "unavailable", reason, retryAfterS: expect.any(Number) })));
    expect(provider.requests).toEqual(["/keys"]);
  });
});

test("a provider that is away is asked again, although a token with an unknown key has come meanwhile", async () => {
  using provider = await startProvider();
  provider.answer = (_request, response) => void response.writeHead(503).end();
  const token = await provider.sign();
  using verifier = await openAt(provider, { backOffMs: 500, backOffMaxMs: 500 });
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable" });
  await within(provider.nextRequest(), "the next question");
});

describe("keys that did not change", () => {
  test("leave every token known that they verified", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
    const text = await provider.sign();
    await outcomeOf(verifier, text);
    await verifier.reload?.();
    expect(provider.requests).toEqual(["/keys", "/keys"]);
    expect(verifier.verify({ text, digest: digestOf(text) })).toMatchObject({ kind: "principal" });
  });
});

test("a good key is used beside broken ones, and is the only one that a token without kid can mean", async () => {
  using provider = await startProvider();
  const [first] = provider.keys.map(({ jwk }) => jwk);
  const document = JSON.stringify({ keys: [null, { ...first, x: "AA" }, first, { ...first, d: "AA" }] });
  provider.answer = (_request, response) => void response.end(document);
  const reported: unknown[] = [];
  const log: OperatorLog = { warn: () => {}, info: (fields, message) => reported.push([fields, message]) };
  using verifier = await openAt(provider, byDemand, log);
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  expect(await outcomeOf(verifier, await provider.sign({}, { kid: undefined }))).toMatchObject({ kind: "principal" });
  expect(reported).toEqual([[{ issuer: provider.issuer, keys: 1 }, "keys changed"]]);
});

describe("keys that are withdrawn", () => {
  test("take every token that they verified with them", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
    const token = await provider.sign();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
    provider.keys = [await createSigningKey("ES256", "second")];
    await verifier.reload?.();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
  });

  test("change while requests run, and no good token is refused", async () => {
    using provider = await startProvider("key-0");
    using verifier = await openAt(provider, { ...byDemand, coolDownMs: 0 });
    const outcomes: Promise<TokenOutcome>[] = [];
    for (const n of [1, 2, 3, 4]) {
      const fresh = await createSigningKey("ES256", `key-${n}`);
      // A provider publishes the next key together with the last one.
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

describe("a misbehaving provider", () => {
  test.each<{
    name: string;
    answer: NonNullable<IdentityProvider["answer"]>;
    want: RegExp;
    fetchMs?: number;
  }>([
    { name: "never answers", answer: () => {}, want: /timeout/i, fetchMs: 3_000 },
    {
      name: "answers with HTML",
      answer: (_request, response) => void response.end("<!doctype html><p>Sign in"),
      want: /is not JSON$/,
    },
    {
      name: "has a secret for a key",
      answer: (_request, response) => void response.end('{"keys":[{"kty":"oct","k":"AAAA","kid":"first"}]}'),
      want: /none of the 1 keys/,
    },
    {
      name: "has keys that are no object",
      answer: (_request, response) => void response.end('{"keys":{"kid":1}}'),
      want: /no array "keys"$/,
    },
    {
      name: "has a key that is broken and has the name of the last",
      answer: (_request, response) => void response.end('{"keys":[{"kty":"EC","crv":"P-256","x":"AA","kid":"first"}]}'),
      want: /none of the 1 keys/,
    },
    { name: "fails", answer: (_request, response) => void response.writeHead(500).end("oops"), want: /answered 500$/ },
  ])("that $name leaves the last keys in use, and the log says why", async ({ answer, want, fetchMs = hourMs }) => {
    using provider = await startProvider();
    const warnings: object[] = [];
    const log: OperatorLog = { info: () => {}, warn: (fields) => warnings.push(fields) };
    // Where the provider hangs, longer than a busy machine needs for the first answer.
    const timing = { ...byDemand, fetchMs };
    using verifier = await openAt(provider, timing, log);
    provider.answer = answer;
    await within(Promise.resolve(verifier.reload?.()), "the end of the fetch");
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(warnings).toEqual([
      {
        errorCode: "ERR_KEYS_UNAVAILABLE",
        issuer: provider.issuer,
        failures: 1,
        keysInUse: 1,
        problem: expect.stringMatching(want),
      },
    ]);
  });

  test("that says there are no keys withdraws them all: no token is taken that they signed", async () => {
    using provider = await startProvider();
    using verifier = await openAt(provider);
    const token = await provider.sign();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
    provider.answer = (_request, response) => void response.end('{"keys":[]}');
    await verifier.reload?.();
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable", retryAfterS: 1 });
    expect(verifier.problem).toBe(`${provider.issuer} has withdrawn all its keys`);
  });

  test.each<{ name: string; document: (provider: IdentityProvider) => unknown; want: RegExp }>([
    { name: "that is a list", document: () => [], want: /openid-configuration is not a JSON object/ },
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
