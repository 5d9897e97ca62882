import { createHash } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import { createSigningKey, startIdentityProvider, testAudience } from "@protoport/testing/process";
import { listenOnLoopback } from "../../../../../../testing/src/http/listen-on-loopback.ts";
import type { TestSettings } from "./running-proxy.ts";
import { Differs } from "../../../../../../testing/src/comparison.ts";
import { fileOf, calls, compare, reading, greenhouse, ask, statusOf, type Effects } from "./comparison.ts";

const token = "a-token-of-a-shop-2026";
const bearer = (text: string): RequestInit => ({ headers: { authorization: `Bearer ${text}` } });
const tokens = [{ file: fileOf("token", token) }];

function compareAuthentication(off: object, on: object, init: RequestInit = bearer(token)): Promise<Differs> {
  return compare({ authentication: off }, { authentication: on }, statusOf(reading, init));
}

/** Compares whether a provider's token is accepted. */
async function compareJwt(
  off: object,
  on: object,
  { claims = {}, header = {} }: { readonly claims?: Record<string, unknown>; readonly header?: object } = {},
): Promise<Differs> {
  using provider = await startIdentityProvider(await createSigningKey("RS256", "1"));
  const settings = (members: object): TestSettings => {
    const text = JSON.stringify({ issuer: provider.issuer, audiences: [testAudience], ...members });
    const jwt: unknown = JSON.parse(text.replaceAll("ISSUER", provider.issuer));
    return { authentication: { jwt: [jwt] } };
  };
  const signed = await provider.sign(claims, { ...header });
  return await compare(settings(off), settings(on), statusOf(reading, bearer(signed)));
}

/** Compares what the introspection endpoint gets, and the status of a call with its response. */
async function compareIntrospection(off: object, on: object, response: object = {}): Promise<Differs> {
  const requests: unknown[] = [];
  const endpoint = createHttpServer((request, reply) => {
    requests.push([request.url, request.headers.authorization]);
    request.resume();
    reply.writeHead(200, { "content-type": "application/json" });
    reply.end(JSON.stringify({ active: true, sub: "ada", aud: "shop", ...response }));
  });
  const url = await listenOnLoopback(endpoint);
  const settings = (members: object): TestSettings => {
    const usual = { url: `${url}/one`, clientId: "proxy", clientSecretFile: fileOf("secret", "secret-of-the-proxy") };
    const text = JSON.stringify({ ...usual, ...members }).replaceAll("ENDPOINT", url);
    return { authentication: { introspection: JSON.parse(text) } };
  };
  try {
    return await compare(settings(off), settings(on), async (proxy) => {
      requests.length = 0;
      return [await statusOf(reading, bearer(token))(proxy), requests[0]];
    });
  } finally {
    endpoint.close();
    endpoint.closeAllConnections();
  }
}

/** Compares the second call's status. */
function compareRates(off: TestSettings, on: TestSettings, second: RequestInit = bearer(token)): Promise<Differs> {
  const authentication = { tokens };
  return compare({ authentication, ...off }, { authentication, ...on }, async (proxy) => {
    await ask(proxy, reading, bearer(token));
    return await statusOf(reading, second)(proxy);
  });
}

const origin = "https://shop.example";

/** Compares the header in the response to a preflight or to a page's call. */
function compareCors(off: object, on: object, init: RequestInit): Promise<Differs> {
  return compare({ cors: { origins: [origin], ...off } }, { cors: { origins: [origin], ...on } }, async (proxy) =>
    [...(await ask(proxy, reading, init)).header].filter(([name]) => name.startsWith("access-control-")),
  );
}

const preflight: RequestInit = {
  method: "OPTIONS",
  headers: { origin, "access-control-request-method": "GET", "access-control-request-headers": "x-cart" },
};

/** Compares the settings that decide who may call. */
export const callerEffects: Effects = {
  "authentication.realm": () =>
    compare({ authentication: { tokens } }, { authentication: { tokens, realm: "shop" } }, async (proxy) =>
      (await ask(proxy, reading)).header.get("www-authenticate"),
    ),
  "authentication.tokens": () =>
    compareAuthentication({ tokens: [{ file: fileOf("other-token", "another-token-of-2026") }] }, { tokens }),
  "authentication.tokenHashesFile": () => {
    const hash = createHash("sha256").update(token).digest("hex");
    const others = [{ file: fileOf("other-token", "another-token-of-2026") }];
    const tokenHashesFile = fileOf("hashes", `sha256:${hash} shop - -\n`);
    return compareAuthentication({ tokens: others }, { tokens: others, tokenHashesFile });
  },
  "authentication.jwt[].issuer": () => compareJwt({ issuer: "https://other.example", keysUrl: "ISSUER/keys" }, {}),
  "authentication.jwt[].audiences": () => compareJwt({ audiences: ["https://other.example"] }, {}),
  "authentication.jwt[].audienceClaim": () =>
    compareJwt({}, { audienceClaim: "client_id" }, { claims: { aud: undefined, client_id: testAudience } }),
  "authentication.jwt[].keysUrl": () =>
    compareJwt({ keysUrl: "ISSUER/.well-known/openid-configuration" }, { keysUrl: "ISSUER/keys" }),
  "authentication.jwt[].keysFile": async () => {
    const { jwk } = await createSigningKey("RS256", "2");
    const file = fileOf("other-keys.json", JSON.stringify({ keys: [jwk] }));
    return await compareJwt({}, { keysFile: file });
  },
  "authentication.jwt[].algorithms": () => compareJwt({ algorithms: ["ES256"] }, { algorithms: ["RS256"] }),
  "authentication.jwt[].type": () => compareJwt({}, { type: "at+jwt" }, { header: { typ: "JWT" } }),
  "authentication.introspection.url": () => compareIntrospection({}, { url: "ENDPOINT/two" }),
  "authentication.introspection.clientId": () => compareIntrospection({}, { clientId: "other" }),
  "authentication.introspection.clientSecretFile": () =>
    compareIntrospection({}, { clientSecretFile: fileOf("other-secret", "another-secret-of-the-proxy") }),
  "authentication.introspection.audiences": () => compareIntrospection({}, { audiences: ["other"] }),
  "authentication.introspection.subjectClaim": () =>
    compareIntrospection({}, { subjectClaim: "client_id" }, { sub: undefined, client_id: "ada" }),
  "authentication.open": () => compareAuthentication({ tokens }, { tokens, open: [greenhouse] }, {}),
  "authentication.publicUrl": () =>
    compare(
      { authentication: { tokens } },
      { authentication: { tokens, publicUrl: "https://api.example" } },
      async (proxy) => (await ask(proxy, reading)).header.get("www-authenticate"),
    ),
  "authentication.initialScopes": () =>
    compare(
      { authentication: { tokens } },
      { authentication: { tokens, initialScopes: ["orders:read"] } },
      async (proxy) => (await ask(proxy, reading)).header.get("www-authenticate"),
    ),
  "authentication.scopes": async () => {
    const hash = createHash("sha256").update(token).digest("hex");
    const tokenHashesFile = fileOf("scoped", `sha256:${hash} shop readings:list -\n`);
    const scopes = { [`${greenhouse}.GetReading`]: "readings:get" };
    return await compareAuthentication({ tokenHashesFile }, { tokenHashesFile, scopes });
  },
  "authentication.forward": () =>
    compare({ authentication: { tokens } }, { authentication: { tokens, forward: false } }, async (proxy) => {
      await ask(proxy, reading, bearer(token));
      return calls.at(-1)?.has("authorization");
    }),
  "rateLimit.perPrincipal": () => compareRates({}, { rateLimit: { perPrincipal: 0.001 } }),
  "rateLimit.perAddress": () => compareRates({}, { rateLimit: { perAddress: 0.001 } }),
  "cors.origins": () => compareCors({ origins: ["https://other.example"] }, {}, { headers: { origin } }),
  "cors.allowedHeaders": () => compareCors({}, { allowedHeaders: ["x-cart"] }, preflight),
  "cors.exposedHeaders": () => compareCors({}, { exposedHeaders: ["x-version"] }, { headers: { origin } }),
  "cors.maxAgeSeconds": () => compareCors({}, { maxAgeSeconds: 5 }, preflight),
  trustedProxies: () => {
    const rateLimit = { perAddress: 0.001 };
    const headers = { authorization: `Bearer ${token}`, "x-forwarded-for": "192.0.2.1" };
    return compareRates({ rateLimit }, { rateLimit, trustedProxies: ["127.0.0.1"] }, { headers });
  },
};
