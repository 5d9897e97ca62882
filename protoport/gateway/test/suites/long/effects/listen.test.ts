import { once } from "node:events";
import { statSync } from "node:fs";
import { createServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { createContextKey, createContextValues } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Address, createCertificate, exchangeHttp1, openSocket } from "../../../../../testing/src/http/index.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { freePort } from "../../../../../testing/src/process/free-port.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
// oxfmt-ignore
import { createGateway, type GatewayOptions, type Limits, type ListenOptions, type ServingOptions,
  type TrustedProxiesOptions } from "../../../../src/index.ts";

// Listens with two values for each option and limit, and compares what a client observes.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const hourMs = 3_600_000;
/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;
const tenantKey = createContextKey("nobody");

const usual: GatewayOptions = {
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: async ({ sensor }, { values }) => {
        if (sensor === "slow") await sleep(200);
        return { sensor: sensor === "tenant" ? values.get(tenantKey) : sensor };
      },
    }),
  endpoints: [
    { path: "/peer", open: true, handle: ({ peer }) => ({ httpStatus: 200, body: peer.address }) },
    { path: "/large", open: true, handle: () => ({ httpStatus: 200, body: "x".repeat(16 * 1024 * 1024) }) },
  ],
};

type Served = { readonly gateway?: Partial<GatewayOptions>; readonly listen?: ListenOptions };
type Observe = (address: Address) => Promise<unknown>;

const compare = (off: Served, on: Served, observe: Observe): Promise<Differs> =>
  compareValues(off, on, async ({ gateway, listen }) => {
    const server = createGateway({ ...usual, ...gateway });
    try {
      return await observe(await server.listen(listen));
    } catch (error) {
      return String(error).replace(/\d+/g, "");
    } finally {
      await server.close();
    }
  });

const get =
  (path: string, header: Readonly<Record<string, string>> = {}): Observe =>
  async (address) => {
    const response = await exchangeHttp1(address, { httpMethod: "GET", path, header: Object.entries(header) });
    return [response.httpStatus, String(response.body)];
  };

const closes =
  (text: string): Observe =>
  async (address) => {
    const socket = openSocket(address);
    socket.on("error", () => undefined).resume();
    if (text !== "") socket.write(text);
    const isClosed = await isClosedSoon(socket);
    socket.destroy();
    return isClosed;
  };

async function isClosedSoon(socket: Socket): Promise<boolean> {
  const closed = Promise.race([once(socket, "end"), once(socket, "close")]).then(() => true);
  return await Promise.race([closed, sleep(settledMs, false)]);
}

const observeSession =
  (read: (session: ReturnType<typeof connectHttp2>) => unknown): Observe =>
  async ({ address, port }) => {
    const session = connectHttp2(`http://${address}:${port}`);
    session.on("error", () => undefined);
    await once(session, "remoteSettings");
    await new Promise((resolve) => session.ping(resolve));
    const observed = await read(session);
    session.destroy();
    return observed;
  };

const livez = "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n";

describe("a listening gateway", () => {
  const compareLimits = (limits: Partial<Limits>, observe: Observe): Promise<Differs> =>
    compare({}, { gateway: { limits } }, observe);

  // oxfmt-ignore
  // limits-at-doors.test.ts exceeds the other limits.
  const limitEffects: EffectsOf<Pick<Limits, "backlogBytes" | "connectionWindowBytes">> = {
    connectionWindowBytes: () =>
      compareLimits({ connectionWindowBytes: 300_000 }, observeSession(({ state }) => state.remoteWindowSize)),
    backlogBytes: () =>
      compareLimits({ backlogBytes: 1_000 }, async (address) => {
        const socket = openSocket(address);
        socket.on("error", () => undefined).pause();
        socket.write(livez.replace("/peer", "/large"));
        await sleep(settledMs);
        socket.resume();
        const isClosed = await isClosedSoon(socket);
        socket.destroy();
        return isClosed;
      }),
  };

  const compareListening = (on: ListenOptions, observe: Observe, off: ListenOptions = {}): Promise<Differs> =>
    compare({ listen: off }, { listen: on }, observe);

  const listenEffects: EffectsOf<ListenOptions> = {
    host: () => compareListening({ host: "0.0.0.0" }, ({ address }) => Promise.resolve(address)),
    port: async () => {
      const port = await freePort();
      return await compareListening({ port }, (address) => Promise.resolve(address.port === port));
    },
    reusePort: async () => {
      const options = { port: await freePort() };
      const listenAgain =
        (reusePort: boolean): Observe =>
        async () => {
          const second = createGateway(usual);
          await second.listen({ ...options, reusePort });
          await second.close();
        };
      return await compareValues(false, true, async (reusePort) => {
        const first = createGateway(usual);
        const { port, address } = await first.listen({ ...options, reusePort });
        const outcome = await listenAgain(reusePort)({ port, address }).catch((error: unknown) => String(error));
        await first.close();
        return outcome;
      });
    },
    path: () => compareListening({ path: folder.file("path.socket") }, ({ port }) => Promise.resolve(port === 0)),
    socketMode: () => {
      const path = folder.file("mode.socket");
      const modeOf: Observe = async () => statSync(path).mode & 0o777;
      return compareListening({ path, socketMode: 0o604 }, modeOf, { path, socketMode: 0o600 });
    },
    tls: () => {
      const [off, on] = [createCertificate("one"), createCertificate("two")];
      return compareListening({ tls: on }, nameOfCertificate, { tls: off });
    },
    allowCleartext: () => {
      const tls = createCertificate("one");
      return compareListening({ tls, allowCleartext: true }, closes(livez), { tls });
    },
    proxyProtocol: () => {
      const trustedProxies: TrustedProxiesOptions = { addresses: ["127.0.0.1"], fields: "none" };
      const text = `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${livez}`;
      const gateway = { trustedProxies };
      return compare({ gateway }, { gateway, listen: { proxyProtocol: true } }, closes(text));
    },
    maxConnectionAgeMs: () => compareListening({ maxConnectionAgeMs: 20 }, goAway, { maxConnectionAgeMs: hourMs }),
    maxConnectionAgeGraceMs: () => {
      // Long enough to send the call on a busy machine, and shorter than the call.
      const ages = { maxConnectionAgeMs: 100 };
      const on = { ...ages, maxConnectionAgeGraceMs: 20 };
      return compareListening(on, getsSlowReading, { ...ages, maxConnectionAgeGraceMs: hourMs });
    },
  };

  const proxyEffects: EffectsOf<TrustedProxiesOptions> = {
    addresses: () => compareProxies({ addresses: ["192.0.2.0/24"] }, { addresses: ["127.0.0.1"] }),
    fields: () => compareProxies({ addresses: ["127.0.0.1"] }, { addresses: ["127.0.0.1"], fields: "forwarded" }),
  };

  function compareProxies(off: TrustedProxiesOptions, on: TrustedProxiesOptions): Promise<Differs> {
    const header = { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.2" };
    return compare({ gateway: { trustedProxies: off } }, { gateway: { trustedProxies: on } }, get("/peer", header));
  }

  test.concurrent.each([
    ...Object.entries(limitEffects).map(([key, comparison]) => ({ option: `limits.${key}`, comparison })),
    ...Object.entries(listenEffects).map(([key, comparison]) => ({ option: `${key} of listen`, comparison })),
    ...Object.entries(proxyEffects).map(([key, comparison]) => ({ option: `trustedProxies.${key}`, comparison })),
  ])("the option $option has an effect", ({ comparison }) => expect(comparison()).resolves.toBeInstanceOf(Differs));
});

const nameOfCertificate: Observe = async ({ address, port }) => {
  const socket = connectTls({ host: address, port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
};

const goAway: Observe = observeSession(async (session) => {
  return await Promise.race([once(session, "goaway").then(() => true), sleep(settledMs, false)]);
});

const getsSlowReading: Observe = observeSession(async (session) => {
  const call = session.request({ ":path": "/sensors/slow/reading" });
  const closed = once(call.on("error", () => undefined).resume(), "close").then(() => "no response");
  return await Promise.race([once(call, "response").then(() => "response"), closed]);
});

/** The options that `listen` shares with {@link Gateway.handler} or does not use. */
// oxfmt-ignore
const gatewayEffects: EffectsOf<Omit<GatewayOptions, keyof ServingOptions>> = {
  trustedProxies: () => compare({}, { gateway: { trustedProxies: { addresses: ["127.0.0.1"] } } },
    get("/peer", { "x-forwarded-for": "192.0.2.1" })),
  fallback: () => compareMounted({}, { fallback: (_, response) => void response.end("fallback") }, "/nowhere"),
  clientAddress: () => compareMounted({}, { clientAddress: () => "192.0.2.1" }, "/peer"),
  contextValues: () => compareMounted({}, { contextValues: () => createContextValues().set(tenantKey, "north") },
    "/sensors/tenant/reading"),
};

/** Compares responses from a gateway that is mounted in a node server. */
function compareMounted(off: Partial<GatewayOptions>, on: Partial<GatewayOptions>, path: string): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    const server = createServer(createGateway({ ...usual, ...options }).handler);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    const response = await get(path)(address);
    server.close();
    server.closeAllConnections();
    return response;
  });
}

test.each(Object.entries(gatewayEffects))("the option %s of createGateway has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
