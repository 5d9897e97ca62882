import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { createHandlerContext } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { createProbes } from "../../src/health/probes.ts";
import { askEndpoint } from "../../../testing/src/gateway/ask-endpoint.ts";
import { exchangeFetch } from "@protoport/testing/http";
import { within } from "@protoport/testing/process";
import { compareValues, Differs, type EffectsOf } from "../../../testing/src/comparison.ts";
// oxfmt-ignore
import { HealthCheckRequestSchema, HealthCheckResponse_ServingStatus as Status
} from "../../src/protobuf/gen/grpc/health/v1/health_pb.ts";
// oxfmt-ignore
import { createHealthService, drainGracefully, type DrainTimes, Health, type HealthOptions, Readiness
} from "../../src/health/index.ts";
import { createGateway } from "../../src/index.ts";

const unhealthy = { problem: "the provider is away" };

test.each([
  ["obstacles() returns an empty array while all parts are healthy", { store: {} }, false, []],
  ["obstacles() returns the name of an unhealthy part", { store: {}, keys: unhealthy }, false, ["keys"]],
  ['obstacles() returns "draining" after startDraining()', { store: {} }, true, ["draining"]],
  ['obstacles() returns "draining" before an unhealthy part', { keys: unhealthy }, true, ["draining", "keys"]],
])("%s", (_name, parts, draining, want) => {
  const readiness = new Readiness(parts);
  if (draining) readiness.startDraining();
  expect(readiness.obstacles()).toEqual(want);
});

test("degraded() returns an unhealthy optional part, obstacles() does not", () => {
  const optional = { ...unhealthy, isOptional: true };
  const readiness = new Readiness({ keys: unhealthy, mirror: optional, other: { isOptional: true } });
  expect([readiness.obstacles(), [...readiness.problems().keys()]]).toEqual([["keys"], ["keys"]]);
  expect(readiness.degraded()).toEqual(["mirror"]);
});

test("readiness recovers when a part recovers", () => {
  const store: { problem: string | undefined } = { problem: "disk full" };
  const readiness = new Readiness({ store });
  expect(readiness.obstacles()).toEqual(["store"]);
  store.problem = undefined;
  expect(readiness.obstacles()).toEqual([]);
});

test.each([
  { parts: [], got: "undefined" },
  { parts: [null], got: "null" },
  { parts: [["store"]], got: "an array" },
])("Readiness refuses $got instead of an object with parts", ({ parts, got }) => {
  expect(() => Reflect.construct(Readiness, parts)).toThrow(
    expect.objectContaining({ code: "ERR_OPTIONS", message: `Readiness requires an object of parts, got ${got}` }),
  );
});

const healthy = new Readiness({});
const draining = new Readiness({});
draining.startDraining();
const broken = new Readiness({ store: { problem: "/var/lib/orders.db: disk full" } });
const mirror = { problem: "10.0.0.7 does not respond", isOptional: true };
const degraded = new Readiness({ mirror });
const brokenAndDegraded = new Readiness({ mirror, store: { problem: "disk full" } });

test.each(
  // oxfmt-ignore
  [
    ["/livez returns 200 while all parts are healthy", "/livez", healthy, 200, { status: "live" }],
    ["/livez returns 200 while draining, which avoids a restart", "/livez", draining, 200, { status: "live" }],
    ["/livez returns 200 while the store is unavailable, because restarts cannot help", "/livez", broken, 200,
      { status: "live" }],
    ["/readyz returns 200 while all parts are healthy", "/readyz", healthy, 200, { status: "ready" }],
    ["/readyz returns 503 while draining", "/readyz", draining, 503, { status: "not ready", obstacles: ["draining"] }],
    ["/readyz names the unhealthy part but not the file in its error", "/readyz", broken, 503,
      { status: "not ready", obstacles: ["store"] }],
    ["/readyz returns 200 and names an unhealthy optional part", "/readyz", degraded, 200,
      { status: "ready", degraded: ["mirror"] }],
    ["/readyz lists unhealthy optional parts separately from obstacles", "/readyz", brokenAndDegraded, 503,
      { status: "not ready", obstacles: ["store"], degraded: ["mirror"] }],
    ["/healthz returns the response of /readyz", "/healthz", broken, 503,
      { status: "not ready", obstacles: ["store"] }],
  ],
)("%s", async (_, path, readiness, httpStatus, body) => {
  const response = await askEndpoint(createProbes(readiness).find((endpoint) => endpoint.path === path));
  expect(response.httpStatus).toBe(httpStatus);
  expect(response.header).toEqual({ "content-type": "application/json", "cache-control": "no-store" });
  expect(JSON.parse(String(response.body))).toEqual(body);
});

test("probes need no credential", () => {
  const want = ["/livez", "/readyz", "/healthz"].map((path) => ({ path, open: true }));
  expect(createProbes(healthy).map(({ path, open }) => ({ path, open }))).toEqual(want);
});

// Checks health and drains with two values for each option, and compares the results.

const ready = new Readiness({});
const stopping = new Readiness({});
stopping.startDraining();
const usual: HealthOptions = { readiness: ready, services: ["shop.v1.Shop"] };

/** Compares a service's health. */
const compareHealth = (on: Partial<HealthOptions>): Promise<Differs> =>
  compareValues<Partial<HealthOptions>>({}, on, async (options) => {
    const { fetch } = createGateway({
      routes: (router) => router.service(Health, createHealthService({ ...usual, ...options })),
    });
    const header = [["content-type", "application/json"]] as const;
    const request = { httpMethod: "POST", path: `/${Health.typeName}/Check`, header };
    const asked = Buffer.from('{"service":"shop.v1.Shop"}');
    const { httpStatus, body } = await exchangeFetch(fetch, { ...request, body: asked });
    return [httpStatus, String(body)];
  });

const healthEffects: EffectsOf<HealthOptions> = {
  readiness: () => compareHealth({ readiness: stopping }),
  services: () => compareHealth({ services: [] }),
};

/** Compares the timeouts that a server's `drain` gets within 10 ms. */
const compareTimes = (on: Partial<DrainTimes>): Promise<Differs> =>
  compareValues<Partial<DrainTimes>>({}, on, async (times) => {
    const timeouts: number[] = [];
    const server = { drain: async (timeoutMs: number): Promise<void> => void timeouts.push(timeoutMs) };
    const drained = drainGracefully(server, new Readiness({}), { delayMs: 0, timeoutMs: 1_000, ...times });
    await sleep(10);
    const asked = [...timeouts];
    await drained;
    return asked;
  });

const drainEffects: EffectsOf<DrainTimes> = {
  delayMs: () => compareTimes({ delayMs: 500 }),
  timeoutMs: () => compareTimes({ timeoutMs: 2_000 }),
};

test.each([
  ...Object.entries(healthEffects).map(([name, comparison]) => ({ owner: "createHealthService", name, comparison })),
  ...Object.entries(drainEffects).map(([name, comparison]) => ({ owner: "drainGracefully", name, comparison })),
])("the option $name of $owner has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});

const watchFrom = ({ watch }: ReturnType<typeof createHealthService>, requestSignal: AbortSignal) => {
  const call = { method: Health.method.watch, service: Health, protocolName: "grpc", requestMethod: "POST", url: "" };
  const context = createHandlerContext({ ...call, requestSignal });
  return watch(create(HealthCheckRequestSchema), context)[Symbol.asyncIterator]();
};

test("the timer stops when the last watcher disconnects", async () => {
  const service = createHealthService({ readiness: new Readiness({}), services: [] });
  const callers = [new AbortController(), new AbortController()];
  const watchers = callers.map(({ signal }) => watchFrom(service, signal));
  for (const watcher of watchers) await watcher.next();
  using cleared = vi.spyOn(globalThis, "clearInterval");
  for (const [at, caller] of callers.entries()) {
    const next = watchers[at]?.next();
    caller.abort(new Error("gone"));
    await expect(within(Promise.resolve(next), "the end")).rejects.toThrow("gone");
    expect(cleared).toHaveBeenCalledTimes(at);
  }
});

test("a client that has already disconnected does not count as a watcher", async () => {
  const service = createHealthService({ readiness: new Readiness({}), services: [] });
  const first = (requestSignal: AbortSignal) => watchFrom(service, requestSignal).next();
  const gone = Array.from({ length: 1_000 }, () => first(AbortSignal.abort(new Error("gone"))));
  expect(new Set((await Promise.allSettled(gone)).map(({ status }) => status))).toEqual(new Set(["rejected"]));
  const controller = new AbortController();
  expect(await first(controller.signal)).toMatchObject({ value: { status: Status.SERVING } });
  controller.abort();
});

test("a watcher gets a change within a second after another has left", async ({ onTestFinished }) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const tank: { problem?: string } = {};
  const service = createHealthService({ readiness: new Readiness({ tank }), services: [] });
  for (const problem of ["it is dry", "it is wet"]) {
    delete tank.problem;
    const caller = new AbortController();
    const watcher = watchFrom(service, caller.signal);
    await watcher.next();
    const change = watcher.next();
    tank.problem = problem;
    vi.advanceTimersByTime(1_000);
    expect(await within(change, "the change")).toMatchObject({ value: { status: Status.NOT_SERVING } });
    caller.abort();
  }
});
