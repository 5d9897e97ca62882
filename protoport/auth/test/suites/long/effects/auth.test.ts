import { createServer, type RequestListener } from "node:http";
import { existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError, createContextValues } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { createGateway } from "../../../../../gateway/src/index.ts";
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
  testAudience,
  type TestClaims,
  type TestHeader,
} from "../../../../../testing/src/auth/identity-provider.ts";
import { listenOnLoopback } from "../../../../../testing/src/http/listen-on-loopback.ts";
import { waterBedProcedure as procedure } from "../../../../../testing/src/gateway/greenhouse.ts";
import { scopedGreenhouse } from "../../../../../testing/src/gateway/restricted.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { quietLog } from "../../../../../testing/src/operations/quiet-log.ts";
import { OrderService } from "../../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import {
  type BearerAuthOptions,
  type CallRates,
  createBearerAuth,
  createRateLimit,
  createResourceMetadata,
  type IntrospectionSource,
  issueToken,
  type JwtSource,
  limitRates,
  openTokenVerifier,
  principalKey,
  type RateLimitOptions,
  type TokenRequest,
  type TokenSources,
  type TokenVerifier,
} from "../../../../src/index.ts";
import type { KeyTiming } from "../../../../src/jwt/fetched-keys.ts";
import { toStaticToken } from "../../../../src/plain-tokens.ts";
import type { ProtectedResource } from "../../../../src/protected-resource.ts";
import { digestOf } from "../../../../src/token-verifier.ts";

// Verifies tokens, refuses calls and issues tokens with two values for each option, and compares the outcomes.

/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;
const hourMs = 3_600_000;

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Opens the sources, and returns a token's outcome, or the problems if they cannot be opened. */
async function outcomeWith(sources: TokenSources, text: string, more?: () => Promise<unknown>): Promise<unknown> {
  const opened = await openTokenVerifier(sources, quietLog);
  if (opened.kind === "problems") return opened.problems;
  const verifier: TokenVerifier = opened.value;
  try {
    const outcome = await verifier.verify({ text, digest: digestOf(text) });
    return [
      outcome.kind,
      "scopes" in outcome && outcome.scopes,
      "subject" in outcome && outcome.subject,
      await more?.(),
    ];
  } finally {
    verifier.close?.();
  }
}

/** Compares a token's outcomes with two values for the sources. */
function compareSources(off: TokenSources, on: TokenSources, text: string): Promise<Differs> {
  return compareValues(off, on, (sources) => outcomeWith(sources, text));
}

const key = await createSigningKey("ES256", "key");

/** Compares the outcomes for a provider's token. */
async function compareJwt(
  off: (provider: IdentityProvider) => Partial<JwtSource>,
  on: (provider: IdentityProvider) => Partial<JwtSource>,
  claims: TestClaims = {},
  header: TestHeader = {},
): Promise<Differs> {
  using provider = await startIdentityProvider(key);
  const text = await provider.sign(claims, header);
  const usual = { issuer: provider.issuer, audiences: [testAudience] };
  return await compareSources(
    { jwt: [{ ...usual, ...off(provider) }] },
    { jwt: [{ ...usual, ...on(provider) }] },
    text,
  );
}

const none = (): object => ({});

const jwtEffects: EffectsOf<JwtSource> = {
  issuer: () => compareJwt(none, ({ keysUrl }) => ({ issuer: "https://other.example", keysUrl })),
  audiences: () => compareJwt(none, () => ({ audiences: ["other"] })),
  audienceClaim: () =>
    compareJwt(none, () => ({ audienceClaim: "client_id" }), { aud: undefined, client_id: testAudience }),
  keysUrl: () => compareJwt(none, ({ issuer }) => ({ keysUrl: `${issuer}/nowhere` })),
  keysFile: async () => {
    const { jwk } = await createSigningKey("ES256", "other");
    const keysFile = folder.write("keys.json", JSON.stringify({ keys: [jwk] }));
    return await compareJwt(none, () => ({ keysFile }));
  },
  algorithms: () => compareJwt(none, () => ({ algorithms: ["RS256"] })),
  type: () => compareJwt(none, () => ({ type: "at+jwt" }), {}, { typ: "JWT" }),
  enforceScopes: () => compareJwt(none, () => ({ enforceScopes: true }), { scope: "orders:read" }),
  scopeClaims: () =>
    compareJwt(
      () => ({ enforceScopes: true }),
      () => ({ enforceScopes: true, scopeClaims: ["roles"] }),
      { scope: "orders:read", roles: ["orders:write"] },
    ),
  timing: () => compareTiming({ refreshMs: hourMs }, { refreshMs: 30 }, countRequests),
};

/** Observes a provider whose keys are used. */
type Observe = (provider: IdentityProvider, verify: (text?: string) => Promise<string>) => Promise<unknown>;

const countRequests: Observe = async ({ requests }, verify) => {
  await verify();
  const before = requests.length;
  const endMs = performance.now() + settledMs;
  while (requests.length === before && performance.now() < endMs) await sleep(10);
  return requests.length > before;
};

/** @param respond - what the provider does from the start, instead of responding with its keys */
function compareTiming(
  off: Partial<KeyTiming>,
  on: Partial<KeyTiming>,
  observe: Observe,
  respond?: RequestListener,
): Promise<Differs> {
  return compareValues(off, on, async (timing) => {
    using provider = await startIdentityProvider(key);
    provider.respond = respond;
    const { issuer, keysUrl } = provider;
    const text = await provider.sign();
    const opening = openTokenVerifier({ jwt: [{ issuer, keysUrl, audiences: [testAudience], timing }] }, quietLog);
    const isWaiting = await Promise.race([opening.then(() => false), sleep(settledMs, true)]);
    if (isWaiting) provider.stop();
    const opened = await opening;
    if (opened.kind === "problems") throw new Error(opened.problems.join());
    const verifier: TokenVerifier = opened.value;
    try {
      const verify = async (other = text): Promise<string> =>
        (await verifier.verify({ text: other, digest: digestOf(other) })).kind;
      return isWaiting ? "waits" : await observe(provider, verify);
    } finally {
      verifier.close?.();
    }
  });
}

const late = { backOffMs: hourMs, maxBackOffMs: hourMs };
const respondNever: RequestListener = () => undefined;
const fail: RequestListener = (_, response) => void response.writeHead(500).end();
const withoutGap = { unknownKeyGapMs: 0 };

/** Returns how many fetches two tokens with the same unknown key cause. */
const countUnknown: Observe = async (provider, verify) => {
  const before = provider.requests.length;
  for (const jti of ["1", "2"]) await verify(await provider.sign({ jti }, { kid: "unknown" }));
  return provider.requests.length - before;
};

const timingEffects: EffectsOf<KeyTiming> = {
  refreshMs: () => compareTiming({}, { refreshMs: 30 }, countRequests),
  usableMs: () => {
    const refreshing = { refreshMs: 30, backOffMs: hourMs, maxBackOffMs: hourMs };
    return compareTiming(refreshing, { ...refreshing, usableMs: 60 }, async (provider, verify) => {
      await verify();
      provider.respond = fail;
      await sleep(settledMs);
      return await verify();
    });
  },
  unknownKeyGapMs: () => compareTiming({ unknownKeyGapMs: hourMs }, { unknownKeyGapMs: 0 }, countUnknown),
  coolDownMs: () =>
    compareTiming({ ...withoutGap, coolDownMs: hourMs }, { ...withoutGap, coolDownMs: 0 }, countUnknown),
  fetchMs: () => compareTiming({}, { fetchMs: 50 }, (_, verify) => verify(), respondNever),
  backOffMs: () => compareTiming(late, { ...late, backOffMs: 10 }, countRequests, fail),
  maxBackOffMs: () => compareTiming(late, { ...late, maxBackOffMs: 10 }, countRequests, fail),
};

/** Compares what an introspection endpoint gets, and the outcome. */
async function compareIntrospection(
  off: (url: string) => Partial<IntrospectionSource>,
  on: (url: string) => Partial<IntrospectionSource>,
  response: object | "none" = {},
): Promise<Differs> {
  const received: unknown[] = [];
  const endpoint = createServer((request, reply) => {
    received.push([request.url, request.headers.authorization]);
    request.resume();
    const usualResponse = { active: true, sub: "ada", client_id: "shop", aud: "orders", scope: "a" };
    if (response !== "none") reply.end(JSON.stringify({ ...usualResponse, ...response }));
  });
  const url = await listenOnLoopback(endpoint);
  const clientSecretFile = folder.write("secret", "s3cret-of-the-test");
  const usual = { url: `${url}/one`, clientId: "orders", clientSecretFile };
  try {
    return await compareValues(off(url), on(url), async (more) => {
      received.length = 0;
      const outcome = outcomeWith({ introspection: { ...usual, ...more } }, "opaque");
      return [await Promise.race([outcome, sleep(settledMs, "waits")]), ...received];
    });
  } finally {
    endpoint.close();
    endpoint.closeAllConnections();
  }
}

const introspectionEffects: EffectsOf<IntrospectionSource> = {
  url: () => compareIntrospection(none, (url) => ({ url: `${url}/two` })),
  clientId: () => compareIntrospection(none, () => ({ clientId: "other" })),
  clientSecretFile: () =>
    compareIntrospection(none, () => ({ clientSecretFile: folder.write("other-secret", "an0ther-secret") })),
  audiences: () => compareIntrospection(none, () => ({ audiences: ["other"] })),
  subjectClaim: () => compareIntrospection(none, () => ({ subjectClaim: "client_id" }), { sub: undefined }),
  enforceScopes: () => compareIntrospection(none, () => ({ enforceScopes: true })),
  timeoutMs: () => compareIntrospection(none, () => ({ timeoutMs: 50 }), "none"),
};

const token = "token-of-the-effects-test";
const tokens = [toStaticToken("shop", token)];

const sourceEffects: EffectsOf<TokenSources> = {
  tokens: () => compareSources({ tokens: [toStaticToken("other", "another-token")] }, { tokens }, token),
  tokenHashesFile: () => {
    const tokenHashesFile = folder.write("hashes", `sha256:${digestOf("of-the-file")} file - -\n`);
    return compareSources({ tokens }, { tokens, tokenHashesFile }, "of-the-file");
  },
  scopeProblem: () => {
    const tokenHashesFile = folder.write("scoped", `sha256:${digestOf("of-the-file")} file orders:read -\n`);
    return compareSources({ tokenHashesFile }, { tokenHashesFile, scopeProblem: () => "unknown scope" }, "of-the-file");
  },
  tokenPrefix: async () => {
    const issued = await issueToken({ name: "n", prefix: "orders_", scopes: "-", expiry: "-", file: undefined });
    if (issued.kind === "problems") throw new Error(issued.problems.join());
    // The last character is part of the checksum.
    const mistyped = issued.value.token.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    return await compareSources({ tokens, tokenPrefix: "other_" }, { tokens, tokenPrefix: "orders_" }, mistyped);
  },
  jwt: async () => {
    using provider = await startIdentityProvider(key);
    const jwt = [{ issuer: provider.issuer, audiences: [testAudience] }];
    return await compareSources({ tokens }, { tokens, jwt }, await provider.sign());
  },
  introspection: introspectionEffects.url,
  names: () => {
    const tokenHashesFile = folder.file("nowhere");
    return compareSources({ tokenHashesFile }, { tokenHashesFile, names: { tokenHashesFile: "TOKENS" } }, token);
  },
};

const otherScopes = { GetReading: [], WatchReadings: [], RecordReadings: [], ControlClimate: [] };
const usualAuth: BearerAuthOptions = { realm: "orders" };
const publicUrl = new URL("https://orders.example/shop");
const resource: ProtectedResource = { name: "Orders", publicUrl, issuers: [], scopes: [] };

/** Compares the response to a call with two values for the bearer token options. */
function compareAuth(on: Partial<BearerAuthOptions>, authorization: string | null = null): Promise<Differs> {
  return compareValues<Partial<BearerAuthOptions>>({}, on, async (options) => {
    const scopes = new Set(["orders:read"]);
    const principal = { kind: "principal", subject: "ada", issuer: undefined, scopes } as const;
    const auth = createBearerAuth({ verify: () => principal }, { ...usualAuth, ...options });
    const contextValues = createContextValues();
    try {
      const admitProcedure = await auth.admit({ procedure, authorization, connection: {}, contextValues });
      await admitProcedure?.(procedure);
      return contextValues.get(principalKey)?.subject;
    } catch (error) {
      const { code, metadata } = ConnectError.from(error);
      return [code, ...metadata];
    }
  });
}

const bearerEffects: EffectsOf<BearerAuthOptions> = {
  realm: () => compareAuth({ realm: "shop" }),
  requiredScope: () => compareAuth({ requiredScope: () => "orders:delete" }, "Bearer good"),
  services: () =>
    compareAuth({ services: [scopedGreenhouse({ ...otherScopes, WaterBed: ["beds.water"] })] }, "Bearer a"),
  open: () => compareAuth({ open: [procedure] }),
  initialScopes: () => compareAuth({ initialScopes: ["orders:read"] }),
  resourceMetadata: () => compareAuth({ resourceMetadata: createResourceMetadata(resource) }),
};

/** Compares the documents that a gateway serves. */
function compareResources(on: Partial<ProtectedResource>): Promise<Differs> {
  return compareValues<Partial<ProtectedResource>>({}, on, async (options) => {
    const { endpoints, url } = createResourceMetadata({ ...resource, ...options });
    const { fetch } = createGateway({ routes: () => undefined, endpoints });
    const documents: string[] = [];
    for (const { path } of endpoints) documents.push(path, await (await fetch(new Request(`http://a${path}`))).text());
    return [url, documents];
  });
}

const resourceEffects: EffectsOf<ProtectedResource> = {
  name: () => compareResources({ name: "Shop" }),
  publicUrl: () => compareResources({ publicUrl: new URL("https://other.example") }),
  issuers: () => compareResources({ issuers: ["https://id.example"] }),
  scopes: () => compareResources({ scopes: ["orders:read"] }),
  paths: () => compareResources({ paths: ["/mcp"] }),
};

/** Compares which of three calls with one key a rate limit refuses. */
function compareRates(off: RateLimitOptions, on: RateLimitOptions): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    const limit = createRateLimit(options);
    return [1, 2, 3].map(() => {
      try {
        limit.take("ada");
        return "allowed";
      } catch (error) {
        return String(error);
      }
    });
  });
}

let nowMs = 0;
const rate: RateLimitOptions = { name: "caller", callsPerSecond: 1, nowMs: () => 0 };

const rateEffects: EffectsOf<RateLimitOptions> = {
  name: () => compareRates(rate, { ...rate, name: "address" }),
  callsPerSecond: () => compareRates(rate, { ...rate, callsPerSecond: 3 }),
  nowMs: () => compareRates(rate, { ...rate, nowMs: () => (nowMs += 1_000) }),
};

/** Compares whether the second of two calls from a principal and an address is refused. */
function compareCallRates(on: CallRates): Promise<Differs> {
  return compareValues<CallRates>({}, on, async (rates) => {
    const admit = limitRates(({ contextValues }) => {
      contextValues.set(principalKey, { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" });
    }, rates);
    const { fetch } = createGateway({
      routes: (router) => router.service(OrderService, { deleteOrder: () => ({}) }),
      admit,
    });
    const statuses: number[] = [];
    for (let call = 0; call < 2; call++) {
      const request = new Request("http://a/orders/1", { method: "DELETE" });
      statuses.push((await fetch(request, { peer: { address: "192.0.2.1", port: 1 } })).status);
    }
    return statuses;
  });
}

const callRateEffects: EffectsOf<CallRates> = {
  perPrincipal: () => compareCallRates({ perPrincipal: 0.01 }),
  perAddress: () => compareCallRates({ perAddress: 0.01 }),
};

/** Compares the lines for new tokens without their hashes, and whether they are written. */
function compareTokens(on: Partial<TokenRequest>): Promise<Differs> {
  const usual: TokenRequest = { name: "shop", prefix: "orders_", scopes: "orders:read", expiry: "-", file: undefined };
  return compareValues<Partial<TokenRequest>>({}, on, async (request) => {
    rmSync(folder.file("issued"), { force: true });
    const issued = await issueToken({ ...usual, ...request });
    if (issued.kind === "problems") return issued.problems;
    const { token: text, line } = issued.value;
    return [text.slice(0, 7), line.replace(/\S+/, ""), existsSync(folder.file("issued"))];
  });
}

const tokenEffects: EffectsOf<TokenRequest> = {
  name: () => compareTokens({ name: "other" }),
  prefix: () => compareTokens({ prefix: "others_" }),
  scopes: () => compareTokens({ scopes: "-" }),
  expiry: () => compareTokens({ expiry: "2090-01-01T00:00:00Z" }),
  file: () => compareTokens({ file: folder.file("issued") }),
  scopeProblem: () => compareTokens({ scopeProblem: () => "unknown scope" }),
};

const tables: Readonly<Record<string, Readonly<Record<string, () => Promise<Differs>>>>> = {
  openTokenVerifier: sourceEffects,
  "a JWT source": jwtEffects,
  "the timing of keys": timingEffects,
  "an introspection source": introspectionEffects,
  createBearerAuth: bearerEffects,
  createResourceMetadata: resourceEffects,
  createRateLimit: rateEffects,
  limitRates: callRateEffects,
  issueToken: tokenEffects,
};

test.each(
  Object.entries(tables).flatMap(([owner, effects]) =>
    Object.entries(effects).map(([name, comparison]) => ({ owner, name, comparison })),
  ),
)("$name in $owner has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
