import { validationEffects } from "./effects/validation-effects.ts";
import type { X509Certificate } from "node:crypto";
import { callerEffects } from "./effects/caller-effects.ts";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { type Certificate, createCertificate } from "../../../../../testing/src/http/certificate.ts";
import { descriptorSetOf, Differs, restrictedGreenhouse, statelessRequest } from "@protoport/testing/proxy";
import { Health } from "../../../../../gateway/src/health/index.ts";
import { freePort } from "../../../../../testing/src/process/free-port.ts";
import { settingRows } from "../../../../src/settings/setting-flags.ts";
import type { TestSettings } from "./effects/running-proxy.ts";
import { describe, expect, test } from "vitest";
import {
  fileOf,
  calls,
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
  useUpstream,
  waterBed,
} from "./effects/comparison.ts";

// Starts the command with two values for each setting in its file, and compares what a caller, an upstream or an
// operator observes. If the command read a setting but did not use it, both observations would be equal.

/** Returns the settings to listen with a certificate. */
function tlsSettings(name: string, { cert, key }: Certificate): TestSettings {
  return { listen: { port: 0, tls: { cert: fileOf(`${name}.pem`, cert), key: fileOf(`${name}.key`, key) } } };
}

/** Compares the certificates that the proxy serves. */
function compareServedCertificates(): Promise<Differs> {
  return compare(
    tlsSettings("one", createCertificate("one")),
    tlsSettings("two", createCertificate("two")),
    async ({ baseUrl }) => {
      const socket = connectTls({ port: Number(new URL(baseUrl).port), host: "127.0.0.1", rejectUnauthorized: false });
      await once(socket, "secureConnect");
      const certificate: X509Certificate | undefined = socket.getPeerX509Certificate();
      socket.destroy();
      return certificate?.fingerprint256;
    },
  );
}

const unknownParameter = `${reading}?unknown=1`;

function compareRest(off: object, on: object, path: string, init?: RequestInit): Promise<Differs> {
  return compare({ rest: off }, { rest: on }, statusOf(path, init));
}

function compareJson(json: object, observe: Parameters<typeof compare>[2]): Promise<Differs> {
  return compare({}, { rest: { json } }, observe);
}

const toolSettings = (method: string): TestSettings => ({ mcp: { tools: [`${greenhouse}.${method}`] } });

const otherEffects: Effects = {
  "listen.host": () =>
    compare({}, { listen: { host: "0.0.0.0", port: 0 } }, ({ baseUrl }) => new URL(baseUrl).hostname),
  "listen.port": async () => {
    const port = await freePort();
    return await compare({}, { listen: { port } }, ({ baseUrl }) => new URL(baseUrl).port === String(port));
  },
  "listen.tls.cert": compareServedCertificates,
  "listen.tls.key": compareServedCertificates,
  "admin.host": () =>
    compare({}, { admin: { host: "0.0.0.0", port: 0 } }, ({ adminUrl }) => new URL(adminUrl).hostname),
  "admin.port": () => compare({ admin: {} }, { admin: { port: 0 } }, ({ adminUrl }) => adminUrl !== ""),
  "rest.profile": () => compareRest({}, { profile: "grpc-gateway" }, unknownParameter),
  "rest.errors": () => {
    const observe = bodyOf(unknownParameter);
    return compare({}, { rest: { errors: "problem" } }, observe);
  },
  "rest.errorBody": () => compare({}, { rest: { errorBody: { text: "{message}" } } }, bodyOf(unknownParameter)),
  "rest.json.names": async () => {
    await compareJson({ names: "proto" }, bodyOf("/openapi.json"));
    return await compareJson({ names: "proto" }, bodyOf(reading));
  },
  "rest.json.enums": () => {
    const descriptors = fileOf("health.binpb", descriptorSetOf(Health.file));
    const upstream = { descriptors, services: [Health.typeName] };
    const observe = bodyOf(`/${Health.typeName}/Check`, waterBed);
    return compare({ upstream }, { upstream, rest: { json: { enums: "numbers" } } }, observe);
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
    await compare({}, on, statusOf("/sensors/large/reading"));
    return await compare({}, on, statusOf(reading, { headers: { "x-large": "x".repeat(6_000) } }));
  },
  requestBytes: () =>
    compare(
      {},
      { requestBytes: 1_024 },
      statusOf("/beds/1:water", { ...waterBed, body: JSON.stringify({ note: "x".repeat(2_000) }) }),
    ),
  responseBytes: () => compare({}, { responseBytes: 1_024 }, statusOf(`/sensors/${"x".repeat(2_000)}/reading`)),
  docs: () => compare({}, { docs: false }, statusOf("/openapi.json")),
  ...Object.fromEntries(
    (["title", "version", "license.name", "license.identifier", "license.url"] as const).map((path) => {
      const [member = "", inner] = path.split(".");
      const license = { name: "MIT" };
      const value = inner === undefined ? "Shop" : { ...license, [inner]: "Apache-2.0" };
      const off = inner === undefined ? {} : { license };
      const compareInfo = (): Promise<Differs> =>
        compare({ openapi: off }, { openapi: { [member]: value } }, bodyOf("/openapi.json"));
      return [`openapi.${path}`, compareInfo];
    }),
  ),
  "openapi.operationIds": () => compare({}, { openapi: { operationIds: "full" } }, bodyOf("/openapi.json")),
  "mcp.tools": () => {
    const list = statelessRequest("tools/list");
    const init = { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) };
    return compare(toolSettings("WaterBed"), toolSettings("GetReading"), bodyOf("/mcp", init));
  },
  "mcp.paramHeaders": () => {
    const list = statelessRequest("tools/list");
    const init = { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) };
    const tools = [`${greenhouse}.GetReading`];
    const paramHeaders = { "greenhouse.v1.GetReadingRequest.sensor": "Sensor" };
    return compare({ mcp: { tools } }, { mcp: { tools, paramHeaders } }, bodyOf("/mcp", init));
  },
  "visibility.allow": () => {
    const upstream = { descriptors: fileOf("restricted.binpb", descriptorSetOf(restrictedGreenhouse())) };
    return compare(
      { upstream, visibility: { allow: ["INTERNAL"] } },
      { upstream, visibility: { allow: [] } },
      statusOf(reading),
    );
  },
  accessLog: () =>
    compare({}, { accessLog: "all" }, async (proxy) => {
      await ask(proxy, reading);
      const endMs = performance.now() + settledMs;
      const isLogged = (): boolean => proxy.lines.some((line) => line.startsWith("{"));
      while (!isLogged() && performance.now() < endMs) await sleep(10);
      return isLogged();
    }),
  "drain.delayMs": () =>
    compare({ drain: { delayMs: 0, timeoutMs: 0 } }, { drain: { delayMs: 2_000, timeoutMs: 0 } }, async (proxy) => {
      proxy.stop();
      // Without a delay, the port closes within the next turns.
      await sleep(200);
      return await statusOf(reading)(proxy).catch(() => "refused");
    }),
  "drain.timeoutMs": () =>
    compare({ drain: { delayMs: 0, timeoutMs: 0 } }, { drain: { delayMs: 0, timeoutMs: 20_000 } }, async (proxy) => {
      const waiting = statusOf("/sensors/waits/reading")(proxy).catch(() => "aborted");
      await expect.poll(() => calls.length).toBe(1);
      proxy.stop();
      await Promise.race([waiting, sleep(settledMs)]);
      release();
      return await waiting;
    }),
  requireAll: async () => {
    const unreachable = `http://127.0.0.1:${await freePort()}`;
    const upstreamsOfBoth = [
      { addresses: [address], descriptors: "reflection", services: ["greenhouse.*"] },
      { addresses: [unreachable], descriptors: "reflection", services: ["signup.*"] },
    ];
    return await compare(
      { upstreams: upstreamsOfBoth },
      { upstreams: upstreamsOfBoth, requireAll: true },
      async ({ adminUrl }) => {
        const statuses = new Set<number>();
        const endMs = performance.now() + settledMs;
        while (!statuses.has(503) && performance.now() < endMs) {
          statuses.add((await fetch(`${adminUrl}/readyz`)).status);
          await sleep(50);
        }
        return statuses.has(503);
      },
    );
  },
  wait: async () => {
    const upstream = { addresses: [`http://127.0.0.1:${await freePort()}`] };
    return await compare({ upstream }, { upstream, wait: true }, ({ outcome }) =>
      outcome.startsWith("waiting for descriptors"),
    );
  },
};

const effects: Effects = { ...callerEffects, ...otherEffects, ...validationEffects };

useUpstream();

describe("each setting of the configuration file", () => {
  test("has a test case in this file", () => {
    // The tests of upstream-settings.ts and proxy-settings.ts decide the options of upstreams and their methods.
    const paths = settingRows()
      .map(({ path }) => path)
      .filter((path) => !/^(?:upstreams|methodConfig)\b/.test(path));
    // Mappings with settings have no value of their own.
    const sections = [".", "[]."].flatMap((end) =>
      paths.filter((path) => paths.some((other) => other.startsWith(path + end))),
    );
    const values = paths.filter((path) => !sections.includes(path));
    expect(Object.keys(effects).toSorted()).toEqual(values.toSorted());
  });

  test.each(Object.entries(effects))("%s has an effect", { timeout: 20_000 }, async (_, comparison) => {
    await comparison();
  });
});
