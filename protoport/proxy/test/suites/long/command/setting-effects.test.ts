import { validationEffects } from "./effects/validation-effects.ts";
import type { X509Certificate } from "node:crypto";
import { upstreamEffects } from "./effects/upstream-effects.ts";
import { callerEffects } from "./effects/caller-effects.ts";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { statelessRequest } from "../../../../../testing/src/gateway/mcp.ts";
import { restrictedGreenhouse } from "../../../../../testing/src/gateway/restricted.ts";
import { Health } from "../../../../../gateway/src/health/index.ts";
import { freePort } from "../../../../../testing/src/process/free-port.ts";
import { settingRows } from "../../../../src/settings/setting-flags.ts";
import type { TestSettings } from "./effects/running-proxy.ts";
import { describe, expect, test } from "vitest";
import { Differs } from "../../../../../testing/src/comparison.ts";
import {
  fileOf,
  calls,
  clientCertificate,
  otherCertificate,
  compare,
  settledMs,
  reading,
  greenhouse,
  ask,
  statusOf,
  bodyOf,
  address,
  release,
  type Effects,
  useUpstreams,
  waterBed,
} from "./effects/comparison.ts";

// Starts the command with two values for each setting in its file, and compares what a caller, an upstream or an
// operator observes. If the command read a setting but did not use it, both observations would be equal.

/** Returns the settings to listen with a certificate. */
function tlsSettings(name: string, { cert, key }: typeof otherCertificate): TestSettings {
  return { listen: { port: 0, tls: { cert: fileOf(`${name}.pem`, cert), key: fileOf(`${name}.key`, key) } } };
}

/** Compares the certificates that the proxy serves. */
function compareServedCertificates(): Promise<Differs> {
  return compare({
    off: tlsSettings("one", clientCertificate),
    on: tlsSettings("two", otherCertificate),
    observe: async ({ baseUrl }) => {
      const socket = connectTls({ port: Number(new URL(baseUrl).port), host: "127.0.0.1", rejectUnauthorized: false });
      await once(socket, "secureConnect");
      const certificate: X509Certificate | undefined = socket.getPeerX509Certificate();
      socket.destroy();
      return certificate?.fingerprint256;
    },
  });
}

const unknownParameter = `${reading}?unknown=1`;

function compareRest(off: object, on: object, path: string, init?: RequestInit): Promise<Differs> {
  return compare({ off: { rest: off }, on: { rest: on }, observe: statusOf(path, init) });
}

function compareJson(json: object, observe: Parameters<typeof compare>[0]["observe"]): Promise<Differs> {
  return compare({ off: {}, on: { rest: { json } }, observe });
}

function toolSettings(method: string): TestSettings {
  return { mcp: { tools: [`${greenhouse}.${method}`] } };
}

const otherEffects: Effects = {
  "listen.host": () =>
    compare({
      off: {},
      on: { listen: { host: "0.0.0.0", port: 0 } },
      observe: ({ baseUrl }) => Promise.resolve(new URL(baseUrl).hostname),
    }),
  "listen.port": async () => {
    const port = await freePort();
    return await compare({
      off: {},
      on: { listen: { port } },
      observe: ({ baseUrl }) => Promise.resolve(new URL(baseUrl).port === String(port)),
    });
  },
  "listen.tls.cert": compareServedCertificates,
  "listen.tls.key": compareServedCertificates,
  "admin.host": () =>
    compare({
      off: {},
      on: { admin: { host: "0.0.0.0", port: 0 } },
      observe: ({ adminUrl }) => Promise.resolve(new URL(adminUrl).hostname),
    }),
  "admin.port": () =>
    compare({
      off: { admin: {} },
      on: { admin: { port: 0 } },
      observe: ({ adminUrl }) => Promise.resolve(adminUrl !== ""),
    }),
  "rest.profile": () => compareRest({}, { profile: "grpc-gateway" }, unknownParameter),
  "rest.errors": () => {
    const observe = bodyOf(unknownParameter);
    return compare({ off: {}, on: { rest: { errors: "problem" } }, observe });
  },
  "rest.json.names": async () => {
    await compareJson({ names: "proto" }, bodyOf("/openapi.json"));
    return await compareJson({ names: "proto" }, bodyOf(reading));
  },
  "rest.json.enums": () => {
    const descriptors = fileOf("health.binpb", descriptorSetOf(Health.file));
    const upstream = { descriptors, services: [Health.typeName] };
    const observe = bodyOf(`/${Health.typeName}/Check`, waterBed);
    return compare({ off: { upstream }, on: { upstream, rest: { json: { enums: "numbers" } } }, observe });
  },
  "rest.json.unpopulated": () => compareJson({ unpopulated: true }, bodyOf("/beds/7:water", waterBed)),
  "rest.json.int64": () => compareJson({ int64: "numbers" }, bodyOf("/beds/7:water", waterBed)),
  "rest.options": () => compareRest({}, { options: ["lenient"] }, unknownParameter),
  "rest.services[].name": () =>
    compareRest(
      { services: [{ name: "other.*", options: ["lenient"] }] },
      { services: [{ name: "greenhouse.*", options: ["lenient"] }] },
      unknownParameter,
    ),
  "rest.services[].profile": () =>
    compareRest(
      { services: [{ name: greenhouse }] },
      { services: [{ name: greenhouse, profile: "grpc-gateway" }] },
      unknownParameter,
    ),
  "rest.services[].options": () =>
    compareRest(
      { services: [{ name: greenhouse }] },
      { services: [{ name: greenhouse, options: ["lenient"] }] },
      unknownParameter,
    ),
  "rest.rules": () => {
    const rules = `http: { rules: [{ selector: ${greenhouse}.GetReading, get: "/moved/{sensor}" }] }`;
    return compareRest({}, { rules: [fileOf("rules.yaml", rules)] }, "/moved/4");
  },
  "rest.omit": () => compareRest({}, { omit: [`${greenhouse}.GetReading`] }, reading),
  headerBytes: async () => {
    const on = { headerBytes: 4_096 };
    await compare({ off: {}, on, observe: statusOf("/sensors/large/reading") });
    return await compare({ off: {}, on, observe: statusOf(reading, { headers: { "x-large": "x".repeat(6_000) } }) });
  },
  requestBytes: () =>
    compare({
      off: {},
      on: { requestBytes: 1_024 },
      observe: statusOf("/beds/1:water", { ...waterBed, body: JSON.stringify({ note: "x".repeat(2_000) }) }),
    }),
  responseBytes: () =>
    compare({
      off: {},
      on: { responseBytes: 1_024 },
      observe: statusOf(`/sensors/${"x".repeat(2_000)}/reading`),
    }),
  docs: () => compare({ off: {}, on: { docs: false }, observe: statusOf("/openapi.json") }),
  ...Object.fromEntries(
    (["title", "version", "license.name", "license.identifier", "license.url"] as const).map((path) => {
      const [member = "", inner] = path.split(".");
      const license = { name: "MIT" };
      const value = inner === undefined ? "Shop" : { ...license, [inner]: "Apache-2.0" };
      const off = inner === undefined ? {} : { license };
      const compareInfo = (): Promise<Differs> =>
        compare({ off: { openapi: off }, on: { openapi: { [member]: value } }, observe: bodyOf("/openapi.json") });
      return [`openapi.${path}`, compareInfo];
    }),
  ),
  "openapi.operationIds": () =>
    compare({ off: {}, on: { openapi: { operationIds: "full" } }, observe: bodyOf("/openapi.json") }),
  "mcp.tools": () => {
    const list = statelessRequest("tools/list");
    const init = { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) };
    return compare({ off: toolSettings("WaterBed"), on: toolSettings("GetReading"), observe: bodyOf("/mcp", init) });
  },
  "mcp.paramHeaders": () => {
    const list = statelessRequest("tools/list");
    const init = { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) };
    const tools = [`${greenhouse}.GetReading`];
    const paramHeaders = { "greenhouse.v1.GetReadingRequest.sensor": "Sensor" };
    return compare({ off: { mcp: { tools } }, on: { mcp: { tools, paramHeaders } }, observe: bodyOf("/mcp", init) });
  },
  "visibility.allow": () => {
    const upstream = { descriptors: fileOf("restricted.binpb", descriptorSetOf(restrictedGreenhouse())) };
    return compare({
      off: { upstream, visibility: { allow: ["INTERNAL"] } },
      on: { upstream, visibility: { allow: [] } },
      observe: statusOf(reading),
    });
  },
  accessLog: () =>
    compare({
      off: {},
      on: { accessLog: "all" },
      observe: async (proxy) => {
        await ask(proxy, reading);
        const endMs = performance.now() + settledMs;
        const isLogged = (): boolean => proxy.lines.some((line) => line.startsWith("{"));
        while (!isLogged() && performance.now() < endMs) await sleep(10);
        return isLogged();
      },
    }),
  "drain.delayMs": () =>
    compare({
      off: { drain: { delayMs: 0, timeoutMs: 0 } },
      on: { drain: { delayMs: 2_000, timeoutMs: 0 } },
      observe: async (proxy) => {
        proxy.stop();
        // Without a delay, the port closes within the next turns.
        await sleep(200);
        return await statusOf(reading)(proxy).catch(() => "refused");
      },
    }),
  "drain.timeoutMs": () =>
    compare({
      off: { drain: { delayMs: 0, timeoutMs: 0 } },
      on: { drain: { delayMs: 0, timeoutMs: 20_000 } },
      observe: async (proxy) => {
        const waiting = statusOf("/sensors/waits/reading")(proxy).catch(() => "aborted");
        await expect.poll(() => calls.length).toBe(1);
        proxy.stop();
        await Promise.race([waiting, sleep(settledMs)]);
        release();
        return await waiting;
      },
    }),
  requireAll: async () => {
    const unreachable = `http://127.0.0.1:${await freePort()}`;
    const upstreamsOfBoth = [
      { addresses: [address], descriptors: "reflection", services: ["greenhouse.*"] },
      { addresses: [unreachable], descriptors: "reflection", services: ["signup.*"] },
    ];
    return await compare({
      off: { upstreams: upstreamsOfBoth },
      on: { upstreams: upstreamsOfBoth, requireAll: true },
      observe: async ({ adminUrl }) => {
        const statuses = new Set<number>();
        const endMs = performance.now() + settledMs;
        while (!statuses.has(503) && performance.now() < endMs) {
          statuses.add((await fetch(`${adminUrl}/readyz`)).status);
          await sleep(50);
        }
        return statuses.has(503);
      },
    });
  },
  wait: async () => {
    const upstream = { addresses: [`http://127.0.0.1:${await freePort()}`] };
    return await compare({
      off: { upstream },
      on: { upstream, wait: true },
      observe: ({ outcome }) => Promise.resolve(outcome.startsWith("waiting for descriptors")),
    });
  },
};

const effects: Effects = { ...upstreamEffects, ...callerEffects, ...otherEffects };
const names = [...Object.keys(effects), ...Object.keys(validationEffects)];

useUpstreams();

describe("each setting of the configuration file", () => {
  test("has a test case in this file", () => {
    // Mappings only have members.
    const values = settingRows().filter(({ type }) => !/^(?:list of )?mappings?$/.test(type));
    expect(names.toSorted()).toEqual(values.map(({ path }) => path).toSorted());
  });

  test.each(Object.entries(effects))("%s has an effect", { timeout: 20_000 }, async (_, comparison) => {
    await comparison();
  });
});
