import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { Health } from "../../../../../gateway/src/health/index.ts";
import { createIssuedCertificate } from "../../../../../testing/src/http/certificate.ts";
import { frameFlag, frameType } from "../../../../../testing/src/http/http2-frames.ts";
import { startOnLoopback } from "../../../../../testing/src/http/listen-on-loopback.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import {
  type GreenhouseClient,
  openGreenhouse,
  respondWatered,
  watered,
  wateringOf,
} from "../../../../../testing/src/gateway/greenhouse-client.ts";
import {
  grpcResponse,
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from "../../../../../testing/src/gateway/scripted-http2-server.ts";
import { createTestGateway } from "../../../../../testing/src/gateway/test-gateway.ts";
import type { UpstreamLimits, UpstreamOptions } from "../../../../src/client/entry.ts";

// Calls upstreams with two values for each option and limit, and compares what the caller or the server observes.

/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;

type Observe = (client: GreenhouseClient, server: ScriptedServer) => Promise<unknown>;
type More = Partial<UpstreamOptions>;

/** Compares two option values with the same scripted server. */
function compareWith(script: Script, off: More, on: More, observe: Observe): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    await using server = await startScriptedServer(script);
    await using client = openGreenhouse({ addresses: server.baseUrl, ...options });
    return await observe(client, server);
  });
}

/** Compares two limits, the first of which is the default. */
function compareLimits(
  script: Script,
  on: Partial<UpstreamLimits>,
  observe: Observe,
  more: More = {},
): Promise<Differs> {
  return compareWith(script, more, { ...more, limits: { ...more.limits, ...on } }, observe);
}

/** Never responds. */
const silent: Script = {};

/** Starts calls, and returns the upstream's load a little later. */
const loadOf =
  (calls: number): Observe =>
  async (client) => {
    const outcomes = Array.from({ length: calls }, () => wateringOf(client));
    await sleep(settledMs);
    const { load } = client.upstream;
    await client.upstream.drain(1);
    await Promise.all(outcomes);
    return load;
  };

/** Returns whether a call ends soon. */
async function endsSoon(outcome: Promise<string>): Promise<string> {
  return await Promise.race([outcome, sleep(settledMs, "waits")]);
}

/** Makes calls concurrently, and returns how many connections are open a little later. */
const openAfter =
  (calls: number): Observe =>
  async (client, server) => {
    await Promise.all(Array.from({ length: calls }, () => wateringOf(client)));
    await sleep(settledMs);
    return server.open;
  };

const oneCall = { connections: 1, limits: { callsPerConnection: 1 } };

const limitEffects: EffectsOf<UpstreamLimits> = {
  waitingCalls: () => compareLimits(silent, { waitingCalls: 1 }, loadOf(4), oneCall),
  queueTimeoutMs: () => compareLimits(silent, { queueTimeoutMs: 50 }, loadOf(2), oneCall),
  queuedBytes: () =>
    compareLimits(silent, { queuedBytes: 20_000 }, async (client) => {
      const { greenhouse, upstream } = client;
      // The server never extends the window.
      const first = greenhouse.waterBed({ note: "x".repeat(200_000) }).catch(() => undefined);
      while (upstream.load.queuedBytes <= 20_000) await sleep(5);
      const second = wateringOf(client);
      const outcome = await endsSoon(second);
      await upstream.drain(1);
      await Promise.all([first, second]);
      return outcome;
    }),
  callsPerConnection: () => compareLimits(silent, { callsPerConnection: 1 }, loadOf(2)),
  streamsBeforeSettings: async () => {
    // Accepts connections, and never sends SETTINGS.
    await using silentServer = await startOnLoopback(createServer((socket) => socket.resume()));
    const more = { addresses: silentServer.baseUrl };
    return await compareLimits(silent, { streamsBeforeSettings: 1 }, loadOf(2), more);
  },
  connectTimeoutMs: async () => {
    // Accepts connections, and never begins TLS.
    await using silentServer = await startOnLoopback(createServer());
    const addresses = silentServer.baseUrl.replace("http:", "https:");
    return await compareLimits(
      silent,
      { connectTimeoutMs: 50 },
      async (client) => {
        const outcome = wateringOf(client);
        const observed = await endsSoon(outcome);
        await client.upstream.drain(1);
        await outcome;
        return observed;
      },
      { addresses },
    );
  },
  closeTimeoutMs: () =>
    compareLimits(silent, { closeTimeoutMs: 50 }, async (client, server) => {
      const outcome = wateringOf(client);
      while (server.requests === 0) await sleep(5);
      const closed = client.upstream.close();
      const observed = await endsSoon(outcome);
      await server[Symbol.asyncDispose]();
      await Promise.all([outcome, closed]);
      return observed;
    }),
  headerBytes: () => {
    // oxfmt-ignore
    const script: Script = { request: (connection,
      id) => connection.send(...grpcResponse(id, watered, [["grpc-status", "0"], ["x-long", "x".repeat(9_000)]])) };
    return compareLimits(script, { headerBytes: 4_096 }, wateringOf);
  },
  idleTimeoutMs: () => compareLimits(respondWatered, { idleTimeoutMs: 50 }, openAfter(1)),
  additionalIdleTimeoutMs: () =>
    compareLimits(respondWatered, { additionalIdleTimeoutMs: 50 }, openAfter(2), { limits: { callsPerConnection: 1 } }),
};

const optionEffects: EffectsOf<UpstreamOptions> = {
  addresses: async () => {
    await using other = await startScriptedServer(silent);
    return await compareWith(silent, {}, { addresses: other.baseUrl }, async (client, server) => {
      const outcome = wateringOf(client);
      await sleep(settledMs);
      const { requests } = server;
      await client.upstream.drain(1);
      await outcome;
      return requests;
    });
  },
  tls: async () => {
    const { cert, key, authority } = createIssuedCertificate("localhost");
    const gateway = createTestGateway({
      routes: (router) => router.service(GreenhouseService, { waterBed: () => ({ liters: 1 }) }),
    });
    const { port } = await gateway.listen({ tls: { cert, key } });
    const addresses = `https://localhost:${port}`;
    try {
      return await compareWith(silent, { addresses }, { addresses, tls: { ca: authority } }, async (client) => {
        const outcome = await wateringOf(client);
        return outcome.startsWith("ok");
      });
    } finally {
      await gateway.close();
    }
  },
  connections: () =>
    compareWith(
      silent,
      { connections: 1, limits: { callsPerConnection: 1 } },
      { connections: 2, limits: { callsPerConnection: 1 } },
      loadOf(2),
    ),
  keepaliveMs: () =>
    compareWith(silent, {}, { keepaliveMs: 20 }, async (client, { frames }) => {
      const outcome = wateringOf(client);
      await sleep(settledMs);
      await client.upstream.drain(1);
      await outcome;
      return frames.some(({ type, flags }) => type === frameType.ping && (flags & frameFlag.ack) === 0);
    }),
  resolveEveryMs: () => {
    const lookups = { count: 0 };
    const lookup = (): Promise<{ address: string }[]> => {
      lookups.count++;
      return Promise.resolve([{ address: "127.0.0.1" }]);
    };
    return compareNamed({ lookup }, { lookup, resolveEveryMs: 1 }, async (client) => {
      lookups.count = 0;
      // Names are looked up at most once a second.
      const endMs = performance.now() + 1_300;
      while (performance.now() < endMs) {
        await wateringOf(client);
        await sleep(50);
      }
      return lookups.count > 1;
    });
  },
  lookup: () => {
    const found = { lookup: () => Promise.resolve([{ address: "127.0.0.1" }]) };
    const unknown = { lookup: () => Promise.reject(new Error("no such name")) };
    return compareNamed(unknown, found, wateringOf);
  },
  healthService: async () => {
    const watched: string[] = [];
    const gateway = createTestGateway({
      routes: (router) => {
        router.service(GreenhouseService, { waterBed: () => ({ liters: 1 }) });
        router.service(Health, {
          async *watch({ service }, { signal }) {
            watched.push(service);
            yield { status: 1 };
            await once(signal, "abort");
          },
        });
      },
    });
    const { port } = await gateway.listen({ host: "127.0.0.1" });
    const addresses = `http://127.0.0.1:${port}`;
    try {
      return await compareWith(silent, { addresses }, { addresses, healthService: "shop" }, async (client) => {
        watched.length = 0;
        await wateringOf(client);
        return [...watched];
      });
    } finally {
      await gateway.close();
    }
  },
  maxConnectionAgeMs: () =>
    compareWith(respondWatered, {}, { maxConnectionAgeMs: 20 }, async (client, server) => {
      await wateringOf(client);
      await sleep(settledMs);
      await wateringOf(client);
      return server.connections > 1;
    }),
  limits: limitEffects.callsPerConnection,
};

/** Compares two option values with a server's name. */
function compareNamed(off: More, on: More, observe: Observe): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    await using server = await startScriptedServer(respondWatered);
    const addresses = server.baseUrl.replace("http://127.0.0.1", "dns:upstream.example");
    await using client = openGreenhouse({ addresses, ...options });
    return await observe(client, server);
  });
}

test.concurrent.each([
  ...Object.entries(optionEffects).map(([name, comparison]) => ({ option: name, comparison })),
  ...Object.entries(limitEffects).map(([name, comparison]) => ({ option: `limits.${name}`, comparison })),
])("the option $option of createUpstream has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
