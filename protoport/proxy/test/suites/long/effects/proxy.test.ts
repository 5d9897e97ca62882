import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { exchangeFetch } from "../../../../../testing/src/http/fetch.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { restrictedGreenhouse } from "../../../../../testing/src/gateway/restricted.ts";
import { createTestGateway } from "../../../../../testing/src/gateway/test-gateway.ts";
import { LibraryService } from "../../../../../testing/src/gen/library/v1/library_pb.ts";
import {
  createProxy,
  type ForwardRules,
  type MethodSettings,
  type ProxiedUpstreamOptions,
  type ProxyGateway,
  type ProxyOptions,
  type VisibilityOptions,
} from "../../../../src/create-proxy.ts";

// Calls an upstream through proxies with two values for each option, and compares what callers and the upstream
// observe.

/** The header fields in calls to the upstream since the last proxy started. */
const calls: Headers[] = [];
const reflectionCalls: Headers[] = [];

function upstreamRoutes(degreesCelsius: number): (router: ConnectRouter) => void {
  const reflection = createReflectionService([GreenhouseService]);
  return (router) => {
    router.service(GreenhouseService, {
      getReading: ({ sensor }, { requestHeader, responseHeader }) => {
        calls.push(requestHeader);
        if (sensor === "fails") throw new ConnectError("again", Code.Unavailable);
        responseHeader.set("x-internal", "1");
        return { sensor, degreesCelsius };
      },
      waterBed: ({ bed }) => ({ bed }),
    });
    router.service(ServerReflection, {
      serverReflectionInfo: (requests, context) => {
        reflectionCalls.push(context.requestHeader);
        return reflection.serverReflectionInfo(requests, context);
      },
    });
  };
}

const [first, second] = [21, 30].map((degrees) => createTestGateway({ routes: upstreamRoutes(degrees) }));
/** The upstreams' addresses. */
let [address, otherAddress] = ["", ""];
beforeAll(async () => {
  address = `http://127.0.0.1:${(await first?.listen({ host: "127.0.0.1" }))?.port}`;
  otherAddress = `http://127.0.0.1:${(await second?.listen({ host: "127.0.0.1" }))?.port}`;
});
afterAll(async () => {
  for (const gateway of [first, second]) await gateway?.close();
});

const greenhouse = descriptorSetOf(GreenhouseService.file);
const reading = "/sensors/4/reading";

type Observe = (proxy: ProxyGateway) => Promise<unknown>;

/**
 * Starts a proxy with each value, and compares what is observed. If a proxy does not start, its error message is
 * compared.
 */
function compare(off: Partial<ProxyOptions>, on: Partial<ProxyOptions>, observe: Observe): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    for (const list of [calls, reflectionCalls]) list.length = 0;
    const upstreams = [{ upstream: address, descriptors: greenhouse }];
    try {
      const proxy = await createProxy({ upstreams, ...options });
      try {
        return await observe(proxy);
      } finally {
        await proxy.close();
      }
    } catch (error) {
      return String(error);
    }
  });
}

/** Gets a path, and returns the response. */
const get =
  (path: string, header: Readonly<Record<string, string>> = {}): Observe =>
  async ({ fetch }) => {
    const response = await exchangeFetch(fetch, { httpMethod: "GET", path, header: Object.entries(header) });
    return [response.httpStatus, response.header, String(response.body)];
  };

/** Gets a reading, and returns a header field that the upstream got. */
const forwardedField =
  (name: string, header: Readonly<Record<string, string>> = {}): Observe =>
  async (proxy) => {
    await get(reading, header)(proxy);
    return calls.at(-1)?.get(name);
  };

/** Returns a call's timeout in seconds. */
const timeoutOf =
  (header: Readonly<Record<string, string>> = {}): Observe =>
  async (proxy) => {
    const [, digits = "", unit = ""] =
      /^(\d+)(\w)$/.exec(String(await forwardedField("grpc-timeout", header)(proxy))) ?? [];
    return Math.ceil(Number(digits) * ({ S: 1, m: 1e-3, u: 1e-6, n: 1e-9 }[unit] ?? 0));
  };

/** Calls a sensor whose upstream always fails, and returns how often it was called. */
const attempts: Observe = async (proxy) => {
  await get("/sensors/fails/reading")(proxy);
  return calls.length;
};

function compareUpstreams(
  off: Partial<ProxiedUpstreamOptions>,
  on: Partial<ProxiedUpstreamOptions>,
  observe: Observe,
): Promise<Differs> {
  const upstreamsOf = (more: Partial<ProxiedUpstreamOptions>): readonly ProxiedUpstreamOptions[] => [
    { upstream: address, descriptors: greenhouse, ...more },
  ];
  return compare({ upstreams: upstreamsOf(off) }, { upstreams: upstreamsOf(on) }, observe);
}

const proxyEffects: EffectsOf<Omit<ProxyOptions, Exclude<keyof GatewayOptions, "routes">>> = {
  upstreams: () => compare({}, { upstreams: [{ upstream: otherAddress, descriptors: greenhouse }] }, get(reading)),
  routes: () =>
    compare(
      {},
      { routes: (router) => router.service(LibraryService, { getBook: () => ({ title: "of the proxy" }) }) },
      get("/v1/books/2"),
    ),
  onReload: () => {
    let reports = 0;
    let reads = 0;
    const sets = [greenhouse, descriptorSetOf(LibraryService.file)];
    const read = (): Promise<Uint8Array> => Promise.resolve(sets[reads++ % 2] ?? greenhouse);
    const upstreams = [{ upstream: address, descriptors: { read } }];
    return compare({ upstreams }, { upstreams, onReload: () => void reports++ }, async (proxy) => {
      reports = 0;
      await proxy.reload();
      return reports;
    });
  },
  onUpstreamCall: () => {
    let started = 0;
    const onUpstreamCall = (): undefined => {
      started++;
      return undefined;
    };
    return compare({}, { onUpstreamCall }, async (proxy) => {
      started = 0;
      await get(reading)(proxy);
      return started;
    });
  },
};

const visibilityEffects: EffectsOf<VisibilityOptions> = {
  allow: () => compareVisibility({ allow: [] }, { allow: ["INTERNAL"] }),
};

function compareVisibility(off: VisibilityOptions | undefined, on: VisibilityOptions | undefined): Promise<Differs> {
  const upstreams = [{ upstream: address, descriptors: descriptorSetOf(restrictedGreenhouse()) }];
  const [without, withValue] = [off, on].map((visibility) => ({ upstreams, ...(visibility && { visibility }) }));
  const hidden: Partial<ProxyOptions> = { upstreams, visibility: { allow: [] } };
  return compare(without ?? hidden, on === undefined ? hidden : (withValue ?? hidden), get(reading));
}

const lookAgain = { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
const retry = { ...lookAgain, retryableCodes: [Code.Unavailable] };

const upstreamEffects: EffectsOf<ProxiedUpstreamOptions> = {
  upstream: () => compareUpstreams({}, { upstream: otherAddress }, get(reading)),
  descriptors: () => compareUpstreams({}, { descriptors: descriptorSetOf(LibraryService.file) }, get(reading)),
  reflectionHeader: () => {
    const reflected = { descriptors: "reflection" } as const;
    return compareUpstreams(reflected, { ...reflected, reflectionHeader: { "x-key": "k" } }, async () =>
      reflectionCalls.map((header) => header.get("x-key")),
    );
  },
  reloadEveryMs: () => {
    const reflected = { descriptors: "reflection" } as const;
    return compareUpstreams(
      { ...reflected, reloadEveryMs: 3_600_000 },
      { ...reflected, reloadEveryMs: 1_000 },
      async () => {
        const before = reflectionCalls.length;
        await sleep(1_500);
        return reflectionCalls.length > before;
      },
    );
  },
  services: () => compareUpstreams({}, { services: ["other.*"] }, get(reading)),
  rules: () => {
    const selector = "greenhouse.v1.GreenhouseService.GetReading";
    const rules = [{ selector, pattern: { case: "get", value: "/moved/{sensor}" } }] as const;
    return compareUpstreams({}, { rules }, get("/moved/4"));
  },
  requestHeader: () => compareUpstreams({}, { requestHeader: { deny: ["x-one"] } }, forwardedField("x-one", sent)),
  responseHeader: () => compareUpstreams({}, { responseHeader: { deny: ["x-internal"] } }, get(reading)),
  readMaxBytes: () => compareUpstreams({}, { readMaxBytes: 1_000 }, get(`/sensors/${"x".repeat(2_000)}/reading`)),
  timeoutMs: () => compareUpstreams({}, { timeoutMs: 5_000 }, timeoutOf()),
  maxTimeoutMs: () => compareUpstreams({}, { maxTimeoutMs: 5_000 }, timeoutOf({ "x-server-timeout": "30" })),
  retry: () => compareUpstreams({}, { retry }, attempts),
  methodSettings: () => compareMethod({ timeoutMs: 5_000 }, timeoutOf()),
};

const sent = { "x-one": "1", "x-two": "2" };

/** Compares calls without and with method settings. */
function compareMethod(settings: MethodSettings, observe: Observe): Promise<Differs> {
  return compareUpstreams({ timeoutMs: 1_000 }, { timeoutMs: 1_000, methodSettings: () => settings }, observe);
}

const methodEffects: EffectsOf<MethodSettings> = {
  timeoutMs: () => compareMethod({ timeoutMs: 5_000 }, timeoutOf()),
  maxTimeoutMs: () => compareMethod({ maxTimeoutMs: 5_000 }, timeoutOf({ "x-server-timeout": "30" })),
  retry: () => compareMethod({ retry }, attempts),
};

const forwardEffects: EffectsOf<ForwardRules> = {
  allow: () => compareRules({ allow: ["x-two"] }, "x-one"),
  deny: () => compareRules({ deny: ["x-one"] }, "x-one"),
  rename: () => compareRules({ rename: { "x-one": "x-new" } }, "x-new"),
  set: () => compareRules({ set: () => ({ "x-set": "1" }) }, "x-set"),
};

function compareRules(requestHeader: ForwardRules, name: string): Promise<Differs> {
  return compareUpstreams({}, { requestHeader }, forwardedField(name, sent));
}

test.each([
  ...Object.entries(proxyEffects).map(([name, comparison]) => ({ option: name, comparison })),
  ...Object.entries(visibilityEffects).map(([name, comparison]) => ({ option: `visibility.${name}`, comparison })),
  ...Object.entries(upstreamEffects).map(([name, comparison]) => ({ option: `${name} of an upstream`, comparison })),
  ...Object.entries(methodEffects).map(([name, comparison]) => ({ option: `${name} of methodSettings`, comparison })),
  ...Object.entries(forwardEffects).map(([name, comparison]) => ({ option: `${name} of requestHeader`, comparison })),
])("the option $option of createProxy has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
