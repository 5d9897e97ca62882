import { expect, test } from "vitest";
import type { OperatorLog } from "../../../../src/inputs/reload-record.ts";
import { type IdentityProvider, within } from "@protoport/testing";
import {
  byDemand,
  hourMs,
  openVerifier,
  openVerifierAt,
  outcomeOf,
  startProvider,
} from "../../../../../testing/src/auth/fetched-keys.ts";

test("a failing provider does not invalidate the keys fetched before", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const old = await provider.sign({ jti: "old" });
  expect(await outcomeOf(verifier, old)).toMatchObject({ kind: "principal" });
  provider.stop();
  await verifier.reload?.();
  expect(await outcomeOf(verifier, old)).toMatchObject({ kind: "principal" });
  expect(await outcomeOf(verifier, await provider.sign({ jti: "new" }))).toMatchObject({ kind: "principal" });
  expect(verifier.problem).toBeUndefined();
});

test("a failing provider makes tokens unavailable once its keys are too old", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider, { ...byDemand, usableMs: 0 });
  const token = await provider.sign();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
  provider.stop();
  await verifier.reload?.();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable" });
  expect(verifier.problem).toContain(`no usable keys for ${provider.issuer}: `);
});

test("a failing provider is used again after a fetch returns the same keys", async () => {
  using provider = await startProvider();
  const timing = { ...byDemand, usableMs: 300 };
  using verifier = await openVerifierAt(provider, timing);
  await expect.poll(() => verifier.problem).toMatch(/^no usable keys/);
  const problem = async (): Promise<string | undefined> => (await verifier.reload?.(), verifier.problem);
  await expect.poll(problem).toBeUndefined();
});

test("a failing provider is retried with jittered exponential backoff up to a maximum", async () => {
  using provider = await startProvider();
  provider.respond = (_request, response) => void response.writeHead(503).end();
  const second = 1000;
  const timing = { ...byDemand, backOffMs: 1000 * second, maxBackOffMs: 6000 * second };
  const replicas = await Promise.all(Array.from({ length: 5 }, () => openVerifierAt(provider, timing)));
  const token = await provider.sign();
  for (const maxS of [1000, 2000, 4000, 6000, 6000]) {
    const waits = await Promise.all(
      replicas.map(async (replica) => {
        const outcome = await outcomeOf(replica, token);
        await replica.reload?.();
        return outcome.kind === "unavailable" ? outcome.retryAfterS : 0;
      }),
    );
    expect(Math.max(...waits)).toBeLessThanOrEqual(maxS);
    expect(Math.min(...waits)).toBeGreaterThan(0.75 * maxS - 100);
    expect(new Set(waits).size).toBeGreaterThan(1);
  }
  for (const replica of replicas) replica[Symbol.dispose]();
});

test("a failing provider restarts its backoff after each recovery", async () => {
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
  const timing = { ...byDemand, backOffMs: 1_000_000, maxBackOffMs: 6_000_000 };
  using verifier = await openVerifierAt(provider, timing, log);
  const token = await provider.sign({}, { kid: "unknown" });
  const { respond } = provider;
  for (let outage = 0; outage < 2; outage += 1) {
    provider.respond = (_request, response) => void response.writeHead(503).end();
    for (const _ of [1, 2]) await verifier.reload?.();
    provider.respond = respond;
    await verifier.reload?.();
  }
  provider.respond = (_request, response) => void response.writeHead(503).end();
  await verifier.reload?.();
  const outcome = await outcomeOf(verifier, token);
  expect(outcome).toMatchObject({ kind: "unavailable" });
  expect(outcome.kind === "unavailable" && outcome.retryAfterS).toBeLessThanOrEqual(1_000);
  expect(failures).toEqual([1, 2, 1, 2, 1]);
  const failed = "cannot fetch keys";
  const recovered = "keys fetched again";
  expect(messages).toEqual(["keys changed", failed, failed, recovered, failed, failed, recovered, failed]);
});

test("a failing provider is retried in the background until it recovers", async () => {
  using provider = await startProvider();
  provider.respond = (_request, response) => void response.writeHead(503).end();
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
  using verifier = await openVerifierAt(provider, { backOffMs: 1, maxBackOffMs: 1 }, log);
  expect(verifier.keysFetched).toEqual([]);
  provider.respond = undefined;
  expect(await within(changed.promise, "the keys")).toEqual({ issuer, keys: 1 });
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  expect(warnings[0]).toMatchObject({ failures: 1, keysInUse: 0 });
  expect(verifier.keysFetched).toEqual([{ issuer, atMs: expect.any(Number) }]);
  await verifier.reload?.();
  const fetched = [{ issuer, keys: 1 }, "keys changed"];
  expect(reported).toEqual([fetched, [{ issuer }, "keys fetched again"]]);
  expect(verifier.problem).toBeUndefined();
});

test("a failing provider gets no requests during the backoff", async () => {
  using provider = await startProvider();
  provider.respond = (_request, response) => void response.writeHead(503).end();
  using verifier = await openVerifierAt(provider);
  const outcomes = await Promise.all(
    [1, 2, 3].map(async (n) => await outcomeOf(verifier, await provider.sign({ jti: String(n) }))),
  );
  const reason = expect.stringMatching(/responded with status 503$/);
  expect(outcomes).toEqual(outcomes.map(() => ({ kind: "unavailable", reason, retryAfterS: expect.any(Number) })));
  expect(provider.requests).toEqual(["/keys"]);
});

test("a token that cannot be verified does not stop the fetch retries", async () => {
  using provider = await startProvider();
  provider.respond = (_request, response) => void response.writeHead(503).end();
  const token = await provider.sign();
  using verifier = await openVerifierAt(provider, { backOffMs: 500, maxBackOffMs: 500 });
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable" });
  await within(provider.nextRequest(), "the next request");
});

test.each<{ name: string; respond: NonNullable<IdentityProvider["respond"]>; want: RegExp; fetchMs?: number }>(
  // oxfmt-ignore
  [
    { name: "never responds", respond: () => {}, want: /timeout/i, fetchMs: 3_000 },
    { name: "publishes an invalid key with the previous key's id", respond: (_request, response) =>
        void response.end('{"keys":[{"kty":"EC","crv":"P-256","x":"AA","kid":"first"}]}'),
      want: /none of the 1 keys/ },
  ],
)("a misbehaving provider that $name leaves the previous keys in use", async ({ respond, want, fetchMs = hourMs }) => {
  using provider = await startProvider();
  const warnings: object[] = [];
  const log: OperatorLog = { info: () => {}, warn: (fields) => warnings.push(fields) };
  // Longer than the first response takes on a busy machine.
  const timing = { ...byDemand, fetchMs };
  using verifier = await openVerifierAt(provider, timing, log);
  provider.respond = respond;
  await within(Promise.resolve(verifier.reload?.()), "the end of the fetch");
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "principal" });
  // oxfmt-ignore
  expect(warnings).toEqual([{ errorCode: "ERR_KEYS_UNAVAILABLE", issuer: provider.issuer, failures: 1, keysInUse: 1,
    problem: expect.stringMatching(want) }]);
});

test("a misbehaving provider withdraws all keys when it publishes an empty key set", async () => {
  using provider = await startProvider();
  using verifier = await openVerifierAt(provider);
  const token = await provider.sign();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "principal" });
  provider.respond = (_request, response) => void response.end('{"keys":[]}');
  await verifier.reload?.();
  expect(await outcomeOf(verifier, token)).toMatchObject({ kind: "unavailable", retryAfterS: 1 });
  expect(verifier.problem).toBe(`${provider.issuer} has withdrawn all its keys`);
});

test.each<[name: string, document: (provider: IdentityProvider) => unknown, want: RegExp]>([
  ["is an array", () => [], /openid-configuration is not a JSON object/],
  [
    "is for another issuer",
    ({ keysUrl }) => ({ issuer: "https://evil.example", jwks_uri: keysUrl }),
    /names a different issuer/,
  ],
  ["has no jwks_uri", ({ issuer }) => ({ issuer }), /has no "jwks_uri"/],
  ["links to keys over plain HTTP", ({ issuer }) => ({ issuer, jwks_uri: "http://keys.example/" }), /must use https/],
])("a misbehaving provider whose metadata %s makes tokens unavailable", async (_name, document, want) => {
  using provider = await startProvider();
  provider.respond = (_request, response) => void response.end(JSON.stringify(document(provider)));
  using verifier = await openVerifier({ issuer: provider.issuer });
  expect(await outcomeOf(verifier, await provider.sign())).toMatchObject({ kind: "unavailable" });
  expect(verifier.problem).toMatch(want);
});
