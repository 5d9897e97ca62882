import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { startIdentityProvider, testAudience } from "@protoport/testing/process";
// oxfmt-ignore
import { descriptorSetOf, type Differs, GreenhouseService, restrictedGreenhouse, startReflectingServer
} from "@protoport/testing/proxy";
import { describe, expect, test } from "vitest";
import { Health } from "../../../../../gateway/src/health/index.ts";
import { notesWith } from "../../../../../testing/src/gateway/notes.ts";
import { startSignup, validAccount } from "../../../../../testing/src/gateway/signup.ts";
import { SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { settingRows } from "../../../../src/settings/setting-flags.ts";
import { address, calls, compare, fileOf, release, type TestSettings, useUpstream } from "./effects/comparison.ts";
import { createCertificate, startOnLoopback, createSigningKey, freePort, statelessRequest } from "@protoport/testing";

// Starts the command with two values for each setting in its file, and compares what a caller, an upstream or an
// operator observes. If the command read a setting but did not use it, both observations would be equal.

type Observe = Parameters<typeof compare>[2];
type Proxy = Parameters<Observe>[0];
/** Two values of a setting, and what to observe, or a function that compares the values. */
type Effect = readonly [off: TestSettings, on: TestSettings, observe: Observe] | (() => Promise<Differs>);

/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;
/** Turns in `settledMs`. They are counted, because a busy machine may suspend this process for a second. */
const settledTurns = 50;

const reading = "/sensors/4/reading";
const unknownParameter = `${reading}?unknown=1`;
const greenhouse = GreenhouseService.typeName;

async function ask({ baseUrl }: Proxy, path: string, init: RequestInit = {}) {
  const response = await fetch(`${baseUrl}${path}`, init);
  return { status: response.status, header: response.headers, body: await response.text() };
}

const statusOf =
  (path: string, init?: RequestInit) =>
  async (proxy: Proxy): Promise<number> =>
    (await ask(proxy, path, init)).status;

const bodyOf =
  (path: string, init?: RequestInit) =>
  async (proxy: Proxy): Promise<string> =>
    (await ask(proxy, path, init)).body;

const post = (body: object): RequestInit => ({
  method: "POST",
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" },
});

const waterBed = bodyOf("/beds/7:water", post({}));
const list = statelessRequest("tools/list");
const listTools = bodyOf("/mcp", { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) });
const token = "a-token-of-a-shop-2026";
const bearer = (text: string): RequestInit => ({ headers: { authorization: `Bearer ${text}` } });
const tokens = [{ file: fileOf("token", token) }];
const otherTokens = [{ file: fileOf("other-token", "another-token-of-2026") }];
const hashesWith = (scopes: string): string =>
  fileOf(`hashes ${scopes}`, `sha256:${createHash("sha256").update(token).digest("hex")} shop ${scopes} -\n`);
const challenge: Observe = async (proxy) => (await ask(proxy, reading)).header.get("www-authenticate");

/** Returns the effect of `authentication`, by default on a call with the token. */
const authentication = (off: object, on: object, observe: Observe = statusOf(reading, bearer(token))): Effect => [
  { authentication: off },
  { authentication: on },
  observe,
];

function jwt(off: object, on: object, claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) {
  return async (): Promise<Differs> => {
    using provider = await startIdentityProvider(await createSigningKey("RS256", "1"));
    const settings = (members: object): TestSettings => {
      const text = JSON.stringify({ issuer: provider.issuer, audiences: [testAudience], ...members });
      const item: unknown = JSON.parse(text.replaceAll("ISSUER", provider.issuer));
      return { authentication: { jwt: [item] } };
    };
    const signed = await provider.sign(claims, header);
    return await compare(settings(off), settings(on), statusOf(reading, bearer(signed)));
  };
}

/** Compares what the introspection endpoint gets, and the status of a call with its response. */
function introspection(off: object, on: object, response: object = {}) {
  return async (): Promise<Differs> => {
    const requests: unknown[] = [];
    await using endpoint = await startOnLoopback(
      createServer((request, reply) => {
        requests.push([request.url, request.headers.authorization]);
        request.resume();
        reply.writeHead(200, { "content-type": "application/json" });
        reply.end(JSON.stringify({ active: true, sub: "ada", aud: "shop", ...response }));
      }),
    );
    const clientSecretFile = fileOf("secret", "secret-of-the-proxy");
    const settings = (members: object): TestSettings => {
      const usual = { url: `${endpoint.baseUrl}/one`, clientId: "proxy", clientSecretFile };
      const text = JSON.stringify({ ...usual, ...members }).replaceAll("ENDPOINT", endpoint.baseUrl);
      return { authentication: { introspection: JSON.parse(text) } };
    };
    return await compare(settings(off), settings(on), async (proxy) => {
      requests.length = 0;
      return [await statusOf(reading, bearer(token))(proxy), requests[0]];
    });
  };
}

const rates = (off: TestSettings, on: TestSettings, second: RequestInit = bearer(token)): Effect => [
  { authentication: { tokens }, ...off },
  { authentication: { tokens }, ...on },
  async (proxy) => {
    await ask(proxy, reading, bearer(token));
    return await statusOf(reading, second)(proxy);
  },
];

const origin = "https://shop.example";
const preflight: RequestInit = {
  method: "OPTIONS",
  headers: { origin, "access-control-request-method": "GET", "access-control-request-headers": "x-cart" },
};

/** Returns the effect on the CORS fields in the response to a preflight or to a page's call. */
const cors = (off: object, on: object, init: RequestInit): Effect => [
  { cors: { origins: [origin], ...off } },
  { cors: { origins: [origin], ...on } },
  async (proxy) => [...(await ask(proxy, reading, init)).header].filter(([name]) => name.startsWith("access-control-")),
];

const [one, two] = ["one", "two"].map((name): TestSettings => {
  const { cert, key } = createCertificate(name);
  return { listen: { port: 0, tls: { cert: fileOf(`${name}.pem`, cert), key: fileOf(`${name}.key`, key) } } };
});
const certificates: Effect = [
  one ?? {},
  two ?? {},
  async ({ baseUrl }) => {
    const socket = connectTls({ port: Number(new URL(baseUrl).port), host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  },
];

const json = (values: object, observe: Observe = waterBed): Effect => [{}, { rest: { json: values } }, observe];
const restItem = (off: object, on: object): Effect => [
  { rest: { services: [{ name: greenhouse, ...off }] } },
  { rest: { services: [{ name: greenhouse, ...on }] } },
  statusOf(unknownParameter),
];
const info = (off: object, on: object): Effect => [{ openapi: off }, { openapi: on }, bodyOf("/openapi.json")];
const tools = (method: string, more: object = {}): TestSettings => ({
  mcp: { tools: [`${greenhouse}.${method}`], ...more },
});
const health = { descriptors: fileOf("health.binpb", descriptorSetOf(Health.file)), services: [Health.typeName] };
const restricted = { descriptors: fileOf("restricted.binpb", descriptorSetOf(restrictedGreenhouse())) };
const rules = fileOf("rules.yaml", `http: { rules: [{ selector: ${greenhouse}.GetReading, get: "/moved/{sensor}" }] }`);
const perAddress = 0.001;

// oxfmt-ignore
const effects: Readonly<Record<string, Effect>> = {
  "authentication.realm": authentication({ tokens }, { tokens, realm: "shop" }, challenge),
  "authentication.tokens": authentication({ tokens: otherTokens }, { tokens }),
  "authentication.tokenHashesFile":
    authentication({ tokens: otherTokens }, { tokens: otherTokens, tokenHashesFile: hashesWith("-") }),
  "authentication.jwt[].issuer": jwt({ issuer: "https://other.example", keysUrl: "ISSUER/keys" }, {}),
  "authentication.jwt[].audiences": jwt({ audiences: ["https://other.example"] }, {}),
  "authentication.jwt[].audienceClaim":
    jwt({}, { audienceClaim: "client_id" }, { aud: undefined, client_id: testAudience }),
  "authentication.jwt[].keysUrl":
    jwt({ keysUrl: "ISSUER/.well-known/openid-configuration" }, { keysUrl: "ISSUER/keys" }),
  "authentication.jwt[].keysFile": async () => {
    const { jwk } = await createSigningKey("RS256", "2");
    return await jwt({}, { keysFile: fileOf("other-keys.json", JSON.stringify({ keys: [jwk] })) })();
  },
  "authentication.jwt[].algorithms": jwt({ algorithms: ["ES256"] }, { algorithms: ["RS256"] }),
  "authentication.jwt[].type": jwt({}, { type: "at+jwt" }, {}, { typ: "JWT" }),
  "authentication.introspection.url": introspection({}, { url: "ENDPOINT/two" }),
  "authentication.introspection.clientId": introspection({}, { clientId: "other" }),
  "authentication.introspection.clientSecretFile":
    introspection({}, { clientSecretFile: fileOf("other-secret", "another-secret-of-the-proxy") }),
  "authentication.introspection.audiences": introspection({}, { audiences: ["other"] }),
  "authentication.introspection.subjectClaim":
    introspection({}, { subjectClaim: "client_id" }, { sub: undefined, client_id: "ada" }),
  "authentication.open": authentication({ tokens }, { tokens, open: [greenhouse] }, statusOf(reading)),
  "authentication.publicUrl": authentication({ tokens }, { tokens, publicUrl: "https://api.example" }, challenge),
  "authentication.initialScopes": authentication({ tokens }, { tokens, initialScopes: ["orders:read"] }, challenge),
  "authentication.scopes": authentication({ tokenHashesFile: hashesWith("readings:list") },
    { tokenHashesFile: hashesWith("readings:list"), scopes: { [`${greenhouse}.GetReading`]: "readings:get" } }),
  "authentication.forward": authentication({ tokens }, { tokens, forward: false }, async (proxy) => {
    await ask(proxy, reading, bearer(token));
    return calls.at(-1)?.has("authorization");
  }),
  "rateLimit.perPrincipal": rates({}, { rateLimit: { perPrincipal: 0.001 } }),
  "rateLimit.perAddress": rates({}, { rateLimit: { perAddress } }),
  trustedProxies: rates({ rateLimit: { perAddress } }, { rateLimit: { perAddress }, trustedProxies: ["127.0.0.1"] },
    { headers: { authorization: `Bearer ${token}`, "x-forwarded-for": "192.0.2.1" } }),
  "cors.origins": cors({ origins: ["https://other.example"] }, {}, { headers: { origin } }),
  "cors.allowedHeaders": cors({}, { allowedHeaders: ["x-cart"] }, preflight),
  "cors.exposedHeaders": cors({}, { exposedHeaders: ["x-version"] }, { headers: { origin } }),
  "cors.maxAgeSeconds": cors({}, { maxAgeSeconds: 5 }, preflight),
  "listen.host": [{}, { listen: { host: "0.0.0.0", port: 0 } }, ({ baseUrl }) => new URL(baseUrl).hostname],
  "listen.port": async () => {
    const port = await freePort();
    return await compare({}, { listen: { port } }, ({ baseUrl }) => new URL(baseUrl).port === String(port));
  },
  "listen.tls.cert": certificates,
  "listen.tls.key": certificates,
  "admin.host": [{}, { admin: { host: "0.0.0.0", port: 0 } }, ({ adminUrl }) => new URL(adminUrl).hostname],
  "admin.port": [{ admin: {} }, { admin: { port: 0 } }, ({ adminUrl }) => adminUrl !== ""],
  "rest.profile": [{}, { rest: { profile: "grpc-gateway" } }, statusOf(unknownParameter)],
  "rest.errors": [{}, { rest: { errors: "problem" } }, bodyOf(unknownParameter)],
  "rest.errorBody": [{}, { rest: { errorBody: { text: "{message}" } } }, bodyOf(unknownParameter)],
  "rest.json.names": async () => {
    await compare({}, { rest: { json: { names: "proto" } } }, bodyOf("/openapi.json"));
    return await compare({}, { rest: { json: { names: "proto" } } }, bodyOf(reading));
  },
  "rest.json.enums": [{ upstream: health }, { upstream: health, rest: { json: { enums: "numbers" } } },
    bodyOf(`/${Health.typeName}/Check`, post({}))],
  "rest.json.unpopulated": json({ unpopulated: true }),
  "rest.json.int64": json({ int64: "numbers" }),
  "rest.options": [{}, { rest: { options: ["lenient"] } }, statusOf(unknownParameter)],
  "rest.services[].name": restItem({ name: "other.*", options: ["lenient"] },
    { name: "greenhouse.*", options: ["lenient"] }),
  "rest.services[].profile": restItem({}, { profile: "grpc-gateway" }),
  "rest.services[].options": restItem({}, { options: ["lenient"] }),
  "rest.rules": [{}, { rest: { rules: [rules] } }, statusOf("/moved/4")],
  "rest.omit": [{}, { rest: { omit: [`${greenhouse}.GetReading`] } }, statusOf(reading)],
  headerBytes: async () => {
    const on = { headerBytes: 4_096 };
    await compare({}, on, statusOf("/sensors/large/reading"));
    return await compare({}, on, statusOf(reading, { headers: { "x-large": "x".repeat(6_000) } }));
  },
  requestBytes: [{}, { requestBytes: 1_024 }, statusOf("/beds/1:water", post({ note: "x".repeat(2_000) }))],
  responseBytes: [{}, { responseBytes: 1_024 }, statusOf(`/sensors/${"x".repeat(2_000)}/reading`)],
  docs: [{}, { docs: false }, statusOf("/openapi.json")],
  "openapi.title": info({}, { title: "Shop" }),
  "openapi.version": info({}, { version: "Shop" }),
  "openapi.license.name": info({ license: { name: "MIT" } }, { license: { name: "Apache-2.0" } }),
  "openapi.license.identifier": info({ license: { name: "MIT" } }, { license: { name: "MIT", identifier: "MIT" } }),
  "openapi.license.url": info({ license: { name: "MIT" } }, { license: { name: "MIT", url: "https://a.example" } }),
  "openapi.operationIds": info({}, { operationIds: "full" }),
  "mcp.tools": [tools("WaterBed"), tools("GetReading"), listTools],
  "mcp.paramHeaders": [tools("GetReading"),
    tools("GetReading", { paramHeaders: { "greenhouse.v1.GetReadingRequest.sensor": "Sensor" } }), listTools],
  "visibility.allow": [{ upstream: restricted, visibility: { allow: ["INTERNAL"] } },
    { upstream: restricted, visibility: { allow: [] } }, statusOf(reading)],
  accessLog: [{}, { accessLog: "all" }, async (proxy) => {
    await ask(proxy, reading);
    const isLogged = (): boolean => proxy.lines.some((line) => line.startsWith("{"));
    for (let turn = 0; turn < settledTurns && !isLogged(); turn++) await sleep(settledMs / settledTurns);
    return isLogged();
  }],
  "drain.delayMs": [{}, { drain: { delayMs: 2_000, timeoutMs: 0 } }, async (proxy) => {
    proxy.stop();
    // Without a delay, the port closes within the next turns.
    await sleep(200);
    return await statusOf(reading)(proxy).catch(() => "refused");
  }],
  "drain.timeoutMs": [{}, { drain: { delayMs: 0, timeoutMs: 20_000 } }, async (proxy) => {
    const waiting = statusOf("/sensors/waits/reading")(proxy).catch(() => "aborted");
    await expect.poll(() => calls.length).toBe(1);
    proxy.stop();
    await Promise.race([waiting, sleep(settledMs)]);
    release();
    return await waiting;
  }],
  requireAll: async () => {
    const upstreams = [
      { addresses: [address], descriptors: "reflection", services: ["greenhouse.*"] },
      { addresses: [`http://127.0.0.1:${await freePort()}`], descriptors: "reflection", services: ["signup.*"] },
    ];
    return await compare({ upstreams }, { upstreams, requireAll: true }, async ({ adminUrl }) => {
      const statuses = new Set<number>();
      for (let turn = 0; turn < settledTurns && !statuses.has(503); turn++) {
        statuses.add((await fetch(`${adminUrl}/readyz`)).status);
        await sleep(settledMs / settledTurns);
      }
      return statuses.has(503);
    });
  },
  wait: async () => {
    const upstream = { addresses: [`http://127.0.0.1:${await freePort()}`] };
    return await compare({ upstream }, { upstream, wait: true }, ({ lines }) =>
      lines.at(-1)?.startsWith("waiting for descriptors"),
    );
  },
  validate: async () => {
    await using server = await startSignup(undefined);
    const descriptors = fileOf("signup.binpb", descriptorSetOf(SignupService.file));
    const upstream = { addresses: [`http://127.0.0.1:${server.address.port}`], descriptors };
    const register = statusOf(`/${SignupService.typeName}/Register`, post({ ...validAccount, age: 3 }));
    return await compare({ upstream }, { upstream, validate: true }, register);
  },
  validateReflected: async () => {
    const rule = { type: { case: "string", value: { minLen: 5n } } } as const;
    await using server = await startReflectingServer([notesWith(rule), file_buf_validate_validate.proto]);
    const upstream = { addresses: [`http://${server.address}`] };
    const add = statusOf("/notes.Notes/Add", post({ text0: "long" }));
    return await compare({ upstream }, { upstream, validateReflected: true }, add);
  },
};

useUpstream();

describe("each setting of the configuration file", () => {
  test("has a test case in this file", () => {
    // The tests of upstream-settings.ts and proxy-settings.ts decide the options of upstreams and their methods.
    const paths = settingRows()
      .map(({ path }) => path)
      .filter((path) => !/^(?:upstreams|methodConfig)\b/.test(path));
    // Mappings with settings have no value of their own.
    const isSection = (path: string): boolean =>
      paths.some((other) => [".", "[]."].some((end) => other.startsWith(path + end)));
    expect(Object.keys(effects).toSorted()).toEqual(paths.filter((path) => !isSection(path)).toSorted());
  });

  test.each(Object.entries(effects))("%s has an effect", async (_, effect) => {
    await (typeof effect === "function" ? effect() : compare(...effect));
  });
});
