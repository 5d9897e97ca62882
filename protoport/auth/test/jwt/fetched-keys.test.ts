import { once } from "node:events";
import { expect, test } from "vitest";
import type { OperatorLog } from "../../src/inputs/reload-record.ts";
import { openFetchedKeys } from "../../src/jwt/fetched-keys.ts";
import { withProblems } from "../../src/inputs/text-file.ts";
import { digestOf, type TokenOutcome } from "../../src/token-verifier.ts";
import { createSigningKey, quietLog, startIdentityProviderAt, within } from "@protoport/testing";
import {
  hourMs,
  byDemand,
  openVerifier,
  openVerifierAt,
  outcomeOf,
  startProvider,
} from "../../../testing/src/auth/fetched-keys.ts";

const openId = "/.well-known/openid-configuration";
const oauth = "/.well-known/oauth-authorization-server";

test.each([
  { name: "the OpenID metadata", hide: [], want: [openId, "/keys"] },
  { name: "the OAuth metadata (RFC 8414)", hide: [openId], want: [openId, oauth, "/keys"] },
])("keys that a provider publishes are found if $name links to them", async ({ hide, want }) => {
  using provider = await startProvider();
  provider.hidden = hide;
  using verifier = await openVerifier({ issuer: provider.issuer });
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  expect(provider.requests).toEqual(want);
});

test("keys that a provider publishes are found for an issuer with or without a trailing slash", async () => {
  const hidden = "/realms/orders/.well-known/openid-configuration";
  for (const issuer of ["/realms/orders", "/realms/orders/"]) {
    const key = await createSigningKey("ES256", "first");
    using provider = await startIdentityProviderAt({ issuer, keys: "/keys" }, key);
    provider.hidden = [hidden];
    using verifier = await openVerifier({ issuer: provider.issuer });
    expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
    expect(provider.requests).toEqual([hidden, "/.well-known/oauth-authorization-server/realms/orders", "/keys"]);
  }
});

test("keys that a provider publishes are fetched from a configured URL without discovery", async () => {
  using provider = await startProvider();
  using verifier = await openVerifier({ issuer: "urn:issuer", keysUrl: provider.keysUrl });
  expect(await outcomeOf(verifier, await provider.sign({ iss: "urn:issuer" }))).toMatchObject({ kind: "principal" });
  expect(provider.requests).toEqual(["/keys"]);
});

test("keys that a provider publishes are fetched once for 50 concurrent tokens", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => provider.sign({ jti: String(n) })));
  const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
  expect([new Set(outcomes.map(({ kind }) => kind)), provider.requests]).toEqual([new Set(["principal"]), ["/keys"]]);
});

test("keys that a provider publishes are refreshed in the background, without a token to verify", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider, { refreshMs: 1, backOffMs: hourMs, maxBackOffMs: hourMs });
  await within(provider.nextRequest(), "the refresh");
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
});

test("keys that are fetched in the background are refreshed once per interval, even after 20 reloads", async () => {
  using provider = await startProvider();
  const gaps: number[] = [];
  const document = JSON.stringify({ keys: provider.keys.map(({ jwk }) => jwk) });
  let respondedAtMs = Number.NEGATIVE_INFINITY;
  provider.respond = (_request, response) => {
    gaps.push(performance.now() - respondedAtMs);
    response.end(document, () => (respondedAtMs = performance.now()));
  };
  using verifier = await openVerifierAt(provider, { refreshMs: 80 });
  for (let n = 0; n < 20; n += 1) await verifier.reload?.();
  const requestsBefore = provider.requests.length;
  for (let n = 0; n < 5; n += 1) await within(provider.nextRequest(), "the refresh");
  // At least three quarters of the interval, because a timer rounds its time.
  expect(Math.min(...gaps.slice(requestsBefore, requestsBefore + 5))).toBeGreaterThan(55);
});

const url = new URL("https://id.example");
const keysOptions = { issuer: "urn:issuer", url, algorithms: ["ES256"], log: quietLog } as const;

/** Waits while another verifier fetches its keys ten times. */
async function timeForRequests(): Promise<void> {
  using other = await startProvider();
  using _ = await openVerifierAt(other, { refreshMs: 1 });
  for (let n = 0; n < 10; n += 1) await within(other.nextRequest(), "the refresh of another one");
}

test("close() between two key fetches prevents the next fetch", async () => {
  let fetches = 0;
  const keys = await openFetchedKeys({
    ...keysOptions,
    timing: { backOffMs: 1 },
    fetchDocument: async () => ((fetches += 1), withProblems("it is missing")),
  });
  keys.close();
  await timeForRequests();
  expect(fetches).toBe(1);
  // Retry-After is at least one second, and an integer, even if the next fetch is due.
  expect(keys.retryAfterS).toBe(1);
});

test("close() during a key fetch prevents the next fetch and a warning", async () => {
  let fetches = 0;
  const warnings: object[] = [];
  const keys = await openFetchedKeys({
    ...keysOptions,
    log: { info: () => {}, warn: (fields) => warnings.push(fields) },
    timing: { refreshMs: 1, backOffMs: 1, fetchMs: hourMs },
    fetchDocument: async (signal) => {
      fetches += 1;
      if (fetches > 1 && !signal.aborted) await once(signal, "abort");
      return withProblems("it was closed");
    },
  });
  await expect.poll(() => fetches).toBe(2);
  keys.close();
  await timeForRequests();
  // The warning is of the first fetch, which failed before close().
  expect([fetches, warnings.length]).toEqual([2, 1]);
});

test("a token that names an unknown key is accepted once the provider publishes the key", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const second = await createSigningKey("ES256", "second");
  provider.keys = [...provider.keys, second];
  expect(await outcomeOf(verifier, await provider.sign({}, {}, second))).toMatchObject({ kind: "principal" });
});

test("a token that names an unknown key causes a single fetch even with 200 concurrent tokens", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const stranger = await createSigningKey("ES256", "stranger");
  const tokens = await Promise.all(Array.from({ length: 200 }, (_, n) => provider.sign({ jti: `${n}` }, {}, stranger)));
  const outcomes = await Promise.all(tokens.map((token) => outcomeOf(verifier, token)));
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["invalid"]));
  expect(provider.requests).toEqual(["/keys", "/keys"]);
});

test.each([
  { name: "a set of the last second", timing: { unknownKeyGapMs: hourMs }, fetches: 0 },
  { name: "a fetch for the same key", timing: { coolDownMs: hourMs }, fetches: 1 },
])("a token that names an unknown key causes no fetch after $name", async ({ timing, fetches }) => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider, { ...byDemand, ...timing });
  for (const jti of ["1", "2"]) {
    const token = await provider.sign({ jti }, { kid: "stranger" });
    expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
  }
  expect(provider.requests).toHaveLength(1 + fetches);
});

test("a token that names an unknown key is accepted without a wait although strangers repeat an unknown key", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const stranger = async (): Promise<TokenOutcome> =>
    outcomeOf(verifier, await provider.sign({ jti: String(Math.random()) }, { kid: "stranger" }));
  for (let call = 0; call < 20; call++) expect(await stranger()).toMatchObject({ kind: "invalid" });
  const second = await createSigningKey("ES256", "second");
  provider.keys = [...provider.keys, second];
  expect(await outcomeOf(verifier, await provider.sign({}, {}, second))).toMatchObject({ kind: "principal" });
  expect(await stranger()).toMatchObject({ kind: "invalid" });
  expect(provider.requests).toHaveLength(3);
});

test("a token that names an unknown key is unavailable while strangers' random keys have used up the fetches", async () => {
  using provider = await startProvider();
  using other = await startProvider();
  using verifier = await openVerifierAt(provider);
  using otherVerifier = await openVerifierAt(other);
  for (const kid of ["a", "b", "c"])
    expect(await outcomeOf(verifier, await provider.sign({}, { kid }))).toMatchObject({ kind: "invalid" });
  const second = await createSigningKey("ES256", "second");
  for (const each of [provider, other]) each.keys = [...each.keys, second];
  const outcome = await outcomeOf(verifier, await provider.sign({}, {}, second));
  expect(outcome).toMatchObject({ kind: "unavailable", retryAfterS: 20 });
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  expect(await outcomeOf(otherVerifier, await other.sign({}, {}, second))).toMatchObject({ kind: "principal" });
  expect([provider.requests.length, other.requests.length]).toEqual([4, 2]);
});

test("a token that names an unknown key gets the outcome unavailable while the provider fails", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  provider.stop();
  await verifier.reload?.();
  const outcome = await outcomeOf(verifier, await provider.sign({}, { kid: "stranger" }));
  expect(outcome).toMatchObject({ kind: "unavailable", retryAfterS: expect.any(Number) });
});

test("a token that names an unknown key gets the outcome invalid after the provider recovers", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  provider.respond = (_request, response) => void response.writeHead(503).end();
  await verifier.reload?.();
  provider.respond = undefined;
  await verifier.reload?.();
  expect(await outcomeOf(verifier, await provider.sign({}, { kid: "stranger" }))).toMatchObject({ kind: "invalid" });
});

test("unchanged keys do not invalidate cached tokens", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const text = await provider.sign();
  await outcomeOf(verifier, text);
  await verifier.reload?.();
  expect(provider.requests).toEqual(["/keys", "/keys"]);
  expect(verifier.verify({ text, digest: digestOf(text) })).toMatchObject({ kind: "principal" });
});

test("a valid key among invalid keys is used for tokens without kid", async () => {
  using provider = await startProvider();
  const [first] = provider.keys.map(({ jwk }) => jwk);
  const document = JSON.stringify({ keys: [null, { ...first, x: "AA" }, first, { ...first, d: "AA" }] });
  provider.respond = (_request, response) => void response.end(document);
  const reported: unknown[] = [];
  const log: OperatorLog = { warn: () => {}, info: (fields, message) => reported.push([fields, message]) };
  using verifier = await openVerifierAt(provider, byDemand, log);
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  expect(await outcomeOf(verifier, await provider.sign({}, { kid: undefined }))).toMatchObject({ kind: "principal" });
  expect(reported).toEqual([[{ issuer: provider.issuer, keys: 1 }, "keys changed"]]);
});

test("withdrawn keys invalidate the tokens that they signed", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const token = await provider.sign();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
  provider.keys = [await createSigningKey("ES256", "second")];
  await verifier.reload?.();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "invalid" });
});

test("withdrawn keys do not invalidate tokens of other keys during a rotation", async () => {
  using provider = await startProvider("key-0");
  using verifier = await openVerifierAt(provider);
  const outcomes: Promise<TokenOutcome>[] = [];
  for (const n of [1, 2, 3]) {
    const fresh = await createSigningKey("ES256", `key-${n}`);
    // During a rotation, a provider publishes the next key together with the last one.
    provider.keys = [...provider.keys.slice(-1), fresh];
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => provider.sign({ jti: `${at}` }, {}, fresh)));
    outcomes.push(...tokens.map((token) => outcomeOf(verifier, token)));
  }
  const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
  expect(new Set(kinds)).toEqual(new Set(["principal"]));
});
