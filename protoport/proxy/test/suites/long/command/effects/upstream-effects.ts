import { PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { GreenhouseService } from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { frame, frameFlag, frameType } from "../../../../../../testing/src/http/http2-frames.ts";
import { descriptorSetOf } from "../../../../../../testing/src/gateway/descriptor-set.ts";
import { respondWatered, watered } from "../../../../../../testing/src/gateway/greenhouse-client.ts";
import {
  type Script,
  grpcResponse,
  startScriptedServer,
} from "../../../../../../testing/src/gateway/scripted-http2-server.ts";
import { type RunningProxy, runProxy, type TestSettings } from "./running-proxy.ts";
import { expect } from "vitest";
import { Differs } from "../../../../../../testing/src/comparison.ts";
import {
  fileOf,
  calls,
  reflectionCalls,
  attemptMs,
  issued,
  clientCertificate,
  otherCertificate,
  compare,
  settledMs,
  reading,
  greenhouse,
  ask,
  statusOf,
  bodyOf,
  outcomeOf,
  address,
  otherAddress,
  secureAddress,
  waterBed,
  type Effects,
  watched,
} from "./comparison.ts";

/** Returns the timeout that the last call to the upstream had, in whole seconds. */
async function timeoutOf(proxy: RunningProxy, header: Record<string, string> = {}): Promise<number> {
  await ask(proxy, reading, { headers: header });
  const [, digits = "", unit = ""] = /^(\d+)(\w)$/.exec(calls.at(-1)?.get("grpc-timeout") ?? "") ?? [];
  return Math.ceil(Number(digits) * ({ S: 1, m: 1e-3, u: 1e-6, n: 1e-9 }[unit] ?? Number.NaN));
}

/** Compares the header fields that the upstream gets. */
function compareRequestHeader(off: object, on: object): Promise<Differs> {
  return compare({ upstream: { requestHeader: off } }, { upstream: { requestHeader: on } }, async (proxy) => {
    await ask(proxy, reading, { headers: { "x-one": "1", "x-two": "2" } });
    return ["x-one", "x-two", "x-new", "x-set"].map((name) => calls.at(-1)?.get(name));
  });
}

/** Compares the header fields that the caller gets. */
function compareResponseHeader(off: object, on: object): Promise<Differs> {
  return compare({ upstream: { responseHeader: off } }, { upstream: { responseHeader: on } }, async (proxy) => {
    const { header } = await ask(proxy, reading);
    return ["x-internal", "x-version", "x-new", "x-set"].map((name) => header.get(name));
  });
}

const descriptors = fileOf("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));

/** Compares what a scripted server whose descriptors are in a file observes. */
async function compareScripted(
  script: () => Script,
  off: object,
  on: object,
  observe: (proxy: RunningProxy, server: Awaited<ReturnType<typeof startScriptedServer>>) => Promise<unknown>,
): Promise<Differs> {
  const observed: unknown[] = [];
  for (const settings of [off, on]) {
    await using server = await startScriptedServer(script());
    await using proxy = await runProxy([server.baseUrl], { upstream: { descriptors, ...settings } });
    observed.push(await observe(proxy, server));
  }
  return new Differs(observed);
}

function isPing({ type, flags }: { readonly type: number; readonly flags: number }): boolean {
  return type === frameType.ping && (flags & frameFlag.ack) === 0;
}

/** Compares how the start ends with an upstream that requires TLS and a client certificate. */
function compareTls(off: object, on: object): Promise<Differs> {
  const usual = {
    ca: fileOf("ca.pem", issued.authority),
    cert: fileOf("client.pem", clientCertificate.cert),
    key: fileOf("client.key", clientCertificate.key),
    servername: "localhost",
  };
  const [without, withValue] = [off, on].map((tls) => ({
    upstream: { addresses: [secureAddress], tls: { ...usual, ...tls } },
  }));
  return compare(without ?? {}, withValue ?? {}, outcomeOf);
}

function retrySettings(policy: object): TestSettings {
  const usual = { maxAttempts: 2, initialBackoff: "0.001s", maxBackoff: "0.001s", backoffMultiplier: 1 };
  const retryPolicy = { ...usual, retryableStatusCodes: ["UNAVAILABLE"], ...policy };
  return { methodConfig: [{ name: [{ service: greenhouse }], retryPolicy }] };
}

/** Compares calls with two policies to a sensor whose upstream always fails. */
function compareRetries(off: object, on: object, observe: (gapsMs: readonly number[]) => unknown): Promise<Differs> {
  return compare(retrySettings(off), retrySettings(on), async (proxy) => {
    await ask(proxy, "/sensors/fails/reading");
    return observe(attemptMs.slice(1).map((atMs, at) => atMs - (attemptMs[at] ?? 0)));
  });
}

// In the comparisons below, a policy's longest wait is a second, ±20 %.
const isLong = (gapsMs: readonly number[]): boolean => gapsMs.some((ms) => ms > 700);

function compareMethodConfig(off: object, on: object): Promise<Differs> {
  return compare({ methodConfig: [off] }, { methodConfig: [on] }, (proxy) => timeoutOf(proxy));
}

function compareMethodNames(off: object, on: object): Promise<Differs> {
  return compareMethodConfig({ name: [off], timeout: "5s" }, { name: [on], timeout: "5s" });
}

/** Compares the settings of upstreams and their methods. */
export const upstreamEffects: Effects = {
  "upstreams[].addresses": () => compare({}, { upstream: { addresses: [otherAddress] } }, bodyOf(reading)),
  "upstreams[].descriptors": () => compare({}, { upstream: { descriptors } }, outcomeOf),
  "upstreams[].reflectionHeader": () =>
    compare({}, { upstream: { reflectionHeader: { authorization: "Bearer of-the-proxy" } } }, () =>
      reflectionCalls.at(-1)?.get("authorization"),
    ),
  "upstreams[].services": () => compare({}, { upstream: { services: ["greenhouse.*"] } }, outcomeOf),
  "upstreams[].tls.ca": () => compareTls({ ca: fileOf("other.pem", otherCertificate.cert) }, {}),
  "upstreams[].tls.cert": () =>
    compareTls(
      { cert: fileOf("other.pem", otherCertificate.cert), key: fileOf("other.key", otherCertificate.key) },
      {},
    ),
  "upstreams[].tls.key": () => compareTls({ key: fileOf("other.key", otherCertificate.key) }, {}),
  "upstreams[].tls.servername": () => compareTls({ servername: "other.example" }, {}),
  "upstreams[].timeoutMs": () => compare({}, { upstream: { timeoutMs: 5_000 } }, (proxy) => timeoutOf(proxy)),
  "upstreams[].timeoutMaxMs": () =>
    compare({}, { upstream: { timeoutMaxMs: 5_000 } }, (proxy) => timeoutOf(proxy, { "x-server-timeout": "30" })),
  "upstreams[].retry": () =>
    compareScripted(
      () => ({
        request: (connection, id) =>
          connection.requests === 1
            ? connection.send(frame(frameType.resetStream, 0, id, Buffer.of(0, 0, 0, 7)))
            : connection.send(...grpcResponse(id, watered)),
      }),
      { retry: "off" },
      { retry: "transparent" },
      statusOf("/beds/1:water", waterBed),
    ),
  "upstreams[].connections": () =>
    compareScripted(
      () => ({ opening: [frame(frameType.settings, 0, 0, Buffer.of(0, 3, 0, 0, 0, 1))] }),
      { connections: 1 },
      { connections: 2 },
      async (proxy, server) => {
        const ending = new AbortController();
        const start = (): Promise<unknown> =>
          ask(proxy, "/beds/1:water", { ...waterBed, signal: ending.signal }).catch(() => undefined);
        const waiting = [start()];
        // The second call needs another connection once the limit of the first one is known.
        await expect.poll(() => server.requests).toBe(1);
        waiting.push(start());
        const endMs = performance.now() + settledMs;
        while (server.connections < 2 && performance.now() < endMs) await sleep(10);
        ending.abort();
        await Promise.all(waiting);
        return server.connections;
      },
    ),
  "upstreams[].keepaliveMs": () =>
    compareScripted(
      () => ({}),
      {},
      { keepaliveMs: 20 },
      async (proxy, { frames }) => {
        const ending = new AbortController();
        const waiting = ask(proxy, "/beds/1:water", { ...waterBed, signal: ending.signal }).catch(() => undefined);
        const endMs = performance.now() + settledMs;
        while (!frames.some(isPing) && performance.now() < endMs) await sleep(10);
        ending.abort();
        await waiting;
        return frames.some(isPing);
      },
    ),
  "upstreams[].resolveEveryMs": async () => {
    const name = address.replace("http://127.0.0.1", "dns:localhost");
    const settings = (members: object): TestSettings => ({ upstream: { addresses: [name], ...members } });
    return await compare(settings({}), settings({ resolveEveryMs: 1 }), async (proxy) => {
      const lookups: unknown[] = [];
      const observer = new PerformanceObserver((list) => void lookups.push(...list.getEntries()));
      observer.observe({ entryTypes: ["dns"] });
      const endMs = performance.now() + settledMs;
      while (lookups.length === 0 && performance.now() < endMs) {
        await ask(proxy, reading);
        await sleep(10);
      }
      observer.disconnect();
      return lookups.length > 0;
    });
  },
  "upstreams[].healthService": () =>
    compare({ upstream: { healthService: "" } }, { upstream: { healthService: "shop" } }, async (proxy) => {
      await ask(proxy, reading);
      return [...watched];
    }),
  "upstreams[].maxConnectionAgeMs": () =>
    compareScripted(
      () => respondWatered,
      {},
      { maxConnectionAgeMs: 20 },
      async (proxy, server) => {
        const endMs = performance.now() + settledMs;
        while (server.connections < 2 && performance.now() < endMs) {
          await ask(proxy, "/beds/1:water", waterBed);
          await sleep(10);
        }
        return server.connections > 1;
      },
    ),
  "upstreams[].requestHeader.allow": () => compareRequestHeader({}, { allow: ["x-one"] }),
  "upstreams[].requestHeader.deny": () => compareRequestHeader({}, { deny: ["x-one"] }),
  "upstreams[].requestHeader.rename": () => compareRequestHeader({}, { rename: { "x-one": "x-new" } }),
  "upstreams[].requestHeader.set": () => compareRequestHeader({}, { set: { "x-set": "1" } }),
  "upstreams[].responseHeader.allow": () => compareResponseHeader({}, { allow: ["x-version"] }),
  "upstreams[].responseHeader.deny": () => compareResponseHeader({}, { deny: ["x-internal"] }),
  "upstreams[].responseHeader.rename": () => compareResponseHeader({}, { rename: { "x-version": "x-new" } }),
  "upstreams[].responseHeader.set": () => compareResponseHeader({}, { set: { "x-set": "1" } }),
  "methodConfig[].name[].service": () => compareMethodNames({ service: "other.Service" }, { service: greenhouse }),
  "methodConfig[].name[].method": () =>
    compareMethodNames({ service: greenhouse, method: "WaterBed" }, { service: greenhouse, method: "GetReading" }),
  "methodConfig[].timeout": async () => {
    const [off = {}, on = {}] = ["9s", "5s"].map((timeout) => ({
      upstream: { timeoutMs: 1_000 },
      methodConfig: [{ name: [{ service: greenhouse }], timeout }],
    }));
    // The timeout replaces the upstream's timeout, and limits the caller's timeout.
    await compare(off, on, (proxy) => timeoutOf(proxy));
    return await compare(off, on, (proxy) => timeoutOf(proxy, { "x-server-timeout": "30" }));
  },
  "methodConfig[].retryPolicy.maxAttempts": () => compareRetries({}, { maxAttempts: 3 }, ({ length }) => length),
  "methodConfig[].retryPolicy.initialBackoff": () =>
    compareRetries({ maxBackoff: "1s" }, { maxBackoff: "1s", initialBackoff: "1s" }, isLong),
  "methodConfig[].retryPolicy.maxBackoff": () =>
    compareRetries({ initialBackoff: "1s" }, { initialBackoff: "1s", maxBackoff: "1s" }, isLong),
  "methodConfig[].retryPolicy.backoffMultiplier": () => {
    const policy = { maxAttempts: 3, maxBackoff: "1s" };
    return compareRetries(policy, { ...policy, backoffMultiplier: 1_000 }, isLong);
  },
  "methodConfig[].retryPolicy.retryableStatusCodes": () =>
    compareRetries({}, { retryableStatusCodes: ["ABORTED"] }, ({ length }) => length),
};
