import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createPlantServer, type PlantServerOptions } from "../../src/server/index.ts";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { type LogLines, openLogLines, rowsFor } from "@protoport/testing/process";
import { silentLog } from "@protoport/telemetry/logs";
import { openMemoryStore } from "../../src/stores/index.ts";
import { authorized, startConfigured, testVerifier } from "../support/server/index.ts";

// createPlantServer only passes options on. Each test starts two servers that differ in one option, and fails unless
// their observed behavior also differs. Each option is tested alone, and combined with options that change the code
// path.

interface Served extends AsyncDisposable {
  readonly port: number;
  /** The public URL's path. */
  readonly prefix: string;
  get(path: string, header?: Readonly<Record<string, string>>): Promise<Response>;
  /** Gets the RFC 9728 document for the public URL that effects use. */
  getResource(): Promise<Response>;
  /** Deletes plant 1. Returns the error record's code, or 0 for a success. */
  deletePlant(
    header?: Readonly<Record<string, string>>,
  ): Promise<{ readonly error: number; readonly response: Response }>;
}

async function serve(options: Partial<PlantServerOptions>): Promise<Served> {
  const all = { store: openMemoryStore(new Set([1n, 2n, 3n])), verifier: testVerifier, ...options };
  const server = createPlantServer(all);
  const address = await server.listen({});
  const prefix = (options.publicUrl?.pathname ?? "").replace(/\/$/, "");
  // With fetch, all tests in this file would take twice as long.
  const send = async (httpMethod: string, path: string, header: Readonly<Record<string, string>> = {}) => {
    const response = await exchangeHttp1(address, { httpMethod, path, header: Object.entries(header) });
    const headers = response.header.map(([name, value]): [string, string] => [name, value]);
    const body = response.httpStatus === 204 ? null : Uint8Array.from(response.body);
    return new Response(body, { status: response.httpStatus, headers });
  };
  return {
    port: address.port,
    prefix,
    get: (path, header) => send("GET", prefix + path, header),
    getResource: () => send("GET", `/.well-known/oauth-protected-resource${publicUrl.pathname}`),
    deletePlant: async (header = Object.fromEntries([authorized])) => {
      const response = await send("DELETE", `${prefix}/plants/1`, header);
      const body = await response.text();
      const record: { error: number } = body === "" ? { error: 0 } : JSON.parse(body);
      return { error: record.error, response };
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

interface Effect {
  /** Other options that are required for an effect. */
  readonly with?: Partial<PlantServerOptions>;
  readonly off?: Partial<PlantServerOptions>;
  readonly on: Partial<PlantServerOptions>;
  readonly observe: (server: Served) => Promise<unknown>;
}

/** A test in another file that covers an option. */
type TestReference = readonly [file: string, test: string];

const publicUrl = new URL("https://plants.example/shop");
const unauthorized = { authorization: "Bearer wrong" };
const peerEndpoint: Partial<PlantServerOptions> = {
  endpoints: [{ path: "/peer", open: true, handle: ({ peer }) => ({ httpStatus: 200, body: peer.address }) }],
};
const forwarded = { "x-forwarded-for": "203.0.113.7", forwarded: "for=203.0.113.8" };
const bodyOf = async (response: Promise<Response>): Promise<string> => await (await response).text();

async function statusOf(response: Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.cancel();
  return status;
}

/** Returns a log's lines after a request has been responded to and logged. */
async function linesOf({ lines }: LogLines, request: Promise<unknown>): Promise<Record<string, unknown>[]> {
  await request;
  // The client may receive the response earlier in the turn in which the call is logged.
  await new Promise(setImmediate);
  return lines();
}

function counter(): { readonly count: () => void; readonly calls: () => number } {
  let calls = 0;
  return { count: () => void (calls += 1), calls: () => calls };
}

/** Creates new effects for each comparison, because some have state. */
function createEffects(): Readonly<Record<keyof PlantServerOptions, Effect | TestReference>> {
  const log = openLogLines("info");
  const onRequest = counter();
  const onResponse = counter();
  const intercepted = counter();
  const counting: Interceptor = (next) => (request) => {
    intercepted.count();
    return next(request);
  };
  // oxfmt-ignore
  return {
    store: { off: { store: openMemoryStore() }, on: { store: openMemoryStore(new Set([1n])) },
      observe: async (server) => (await server.deletePlant()).error },
    verifier: { off: { verifier: undefined }, on: {}, observe: async (server) => (await server.deletePlant()).error },
    publicUrl: { off: { publicUrl: undefined }, on: { publicUrl }, observe: (server) => bodyOf(server.getResource()) },
    docs: { on: { docs: "open" }, observe: (server) => statusOf(server.get("/openapi.json")) },
    corsOrigins: { on: { corsOrigins: ["https://shop.example"] }, observe: async (server) =>
        (await server.deletePlant({ origin: "https://shop.example" })).response.headers.get(
          "access-control-allow-origin",
        ) },
    trustedProxies: { with: peerEndpoint, off: { trustedProxies: undefined }, on: { trustedProxies: ["127.0.0.1"] },
      observe: (server) => bodyOf(server.get("/peer", forwarded)) },
    proxyFields: { with: { ...peerEndpoint, trustedProxies: ["127.0.0.1"] }, on: { proxyFields: "forwarded" },
      observe: (server) => bodyOf(server.get("/peer", forwarded)) },
    proxyProtocol: { with: { trustedProxies: ["127.0.0.1"] }, on: { proxyProtocol: "on" },
      observe: async ({ port, prefix }) => {
        const socket = connect({ host: "127.0.0.1", port });
        socket.write("PROXY TCP4 203.0.113.7 192.0.2.9 47 443\r\n");
        socket.write(`GET ${prefix}/livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
        return (await text(socket)).split("\r\n", 1);
      } },
    ratePerPrincipal: { on: { ratePerPrincipal: 0.001 }, observe: secondDelete },
    ratePerAddress: { on: { ratePerAddress: 0.001 }, observe: secondDelete },
    requestIdResponses: { on: { requestIdResponses: "always" },
      observe: async (server) => (await server.get("/livez")).headers.has("x-request-id") },
    logProbes: { with: { log: log.log, publicUrl }, on: { logProbes: "off" },
      observe: async (server) => (await linesOf(log, statusOf(server.get("/livez")))).length },
    jwtIssuers: { with: { publicUrl }, on: { jwtIssuers: ["https://id.example"] },
      observe: (server) => bodyOf(server.getResource()) },
    providerScopes: { with: { publicUrl }, on: { providerScopes: "enforced" },
      observe: (server) => bodyOf(server.getResource()) },
    drainDelayMs: ["server/setting-effects.test.ts", "the setting %s has an effect"],
    drainTimeoutMs: ["server/setting-effects.test.ts", "the setting %s has an effect"],
    limits: { on: { limits: { urlBytes: 32 } }, observe: (server) => statusOf(server.get(`/livez?${"x".repeat(64)}`)) },
    tools: { on: { tools: createPlantTools() },
      observe: async (server) => (await server.get("/mcp", Object.fromEntries([authorized]))).headers.get("allow") },
    log: { off: { log: silentLog }, on: { log: log.log },
      observe: async (server) => (await linesOf(log, statusOf(server.get("/livez")))).length },
    auditLog: { on: { auditLog: log.log },
      observe: async (server) => (await linesOf(log, server.deletePlant(unauthorized))).length },
    deletionLog: { on: { deletionLog: log.log },
      observe: async (server) => (await linesOf(log, server.deletePlant())).length },
    interceptors: { on: { interceptors: [counting] },
      observe: async (server) => (await server.deletePlant(), intercepted.calls()) },
    logFields: { with: { log: log.log }, on: { logFields: () => ({ tenant: "north" }) },
      observe: async (server) => (await linesOf(log, statusOf(server.get("/livez")))).at(-1)?.["tenant"] },
    endpoints: { on: peerEndpoint, observe: (server) => statusOf(server.get("/peer")) },
    onRequest: { on: { onRequest: onRequest.count },
      observe: async (server) => (await statusOf(server.get("/livez")), onRequest.calls()) },
    onResponse: { on: { onResponse: onResponse.count }, observe: async (server) => {
        await statusOf(server.get("/livez"));
        await new Promise(setImmediate);
        return onResponse.calls();
      } },
  };
}

async function secondDelete(server: Served): Promise<number> {
  await server.deletePlant();
  return (await server.deletePlant()).error;
}

/** Options that change a server's code path. */
const contexts: Readonly<Record<string, () => Partial<PlantServerOptions>>> = {
  alone: () => ({}),
  "with a log": () => ({ log: openLogLines("info").log }),
  "with a quiet log": () => ({ log: openLogLines("error").log }),
  "with a separate log for each trail": () => ({
    log: openLogLines("error").log,
    auditLog: openLogLines("info").log,
    deletionLog: openLogLines("info").log,
  }),
  "with telemetry": () => ({
    onRequest: () => {},
    onResponse: () => {},
    logFields: () => ({}),
    interceptors: [(next) => (request) => next(request)],
  }),
  "with a path in the public URL": () => ({ publicUrl: new URL("https://plants.example/api") }),
  "with rates": () => ({ ratePerPrincipal: 1_000_000, ratePerAddress: 1_000_000 }),
  "with another origin": () => ({ corsOrigins: ["https://other.example"] }),
  "with an asynchronous verifier": () => ({ verifier: { verify: async (token) => testVerifier.verify(token) } }),
  "behind a proxy": () => ({ trustedProxies: ["127.0.0.1"] }),
  "with a provider": () => ({ publicUrl: new URL("https://plants.example"), jwtIssuers: ["https://other.example"] }),
};

const effects = Object.entries(createEffects());
const names = effects.flatMap(([name, effect]) => ("observe" in effect ? [name] : []));
const creators = Object.values(contexts);

describe.each(Object.entries(contexts))("%s", (_, createContext) => {
  test.each(rowsFor(createContext, creators, names))("the option %s has an effect", async (name) => {
    const observed: unknown[] = [];
    for (const setting of ["off", "on"] as const) {
      const [, effect] = Object.entries(createEffects()).find(([each]) => each === name) ?? [];
      if (effect === undefined || !("observe" in effect)) throw new Error(`${name} has no effect to observe`);
      await using server = await serve({ ...createContext(), ...effect.with, ...effect[setting] });
      observed.push(await effect.observe(server));
    }
    expect(observed[0]).not.toEqual(observed[1]);
  });
});

const levels = ["silent", "error", "warn", "info"] as const;
const audits = ["always", "by-level"] as const;
const logs = levels.flatMap((level) => audits.map((audit) => ({ level, audit })));

test.each(logs)(
  "metrics count, and the audit trail may list, each call with LOG_LEVEL=$level and PLANTSTORE_AUDIT=$audit in the environment",
  async ({ level, audit }) => {
    const options = { LOG_LEVEL: level, PLANTSTORE_AUDIT: audit, PLANTSTORE_TOKENS: "token-of-the-wiring-test" };
    await using server = await startConfigured(options, { collectsMetrics: true });
    for (const token of ["token-of-the-wiring-test", "wrong"]) {
      const headers = { connection: "close", authorization: `Bearer ${token}` };
      await (await fetch(`${server.baseUrl}/plants/7`, { method: "DELETE", headers })).body?.cancel();
    }
    // The client may receive the response earlier in the turn in which the call is counted.
    await new Promise(setImmediate);
    const durations = server.collectMetrics().find(({ name }) => name === "http.server.request.duration");
    const want = [204, 400];
    expect(durations?.points.map(({ attributes }) => attributes["http.response.status_code"]).toSorted()).toEqual(want);
    const isLogged = level === "info" || (level !== "silent" && audit === "always");
    expect(server.lines().filter(({ msg }) => msg === "call")).toHaveLength(isLogged ? 2 : 0);
  },
);
