import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { startOnLoopback } from "@protoport/testing/http";
import { fastifyConnectPlugin, type FastifyLike } from "../src/fastify.ts";

// The plugin in an object with Fastify's interface. The suite frameworks tests the plugin in Fastify.

type Route = Parameters<FastifyLike["route"]>[0];

/** An application with a prefix, whose only other route is for OPTIONS requests to one URL. */
interface TestApplication extends FastifyLike {
  readonly registered: Route[];
  readonly logged: string[];
}

function createApplication({ prefix = "", optionsUrl = "" }): TestApplication {
  const registered: Route[] = [];
  const logged: string[] = [];
  // oxfmt-ignore
  return { prefix, server: new EventEmitter(), registered, logged,
    log: { error: (_fields, message) => void logged.push(message), warn: (message) => void logged.push(message) },
    removeAllContentTypeParsers: () => undefined, addContentTypeParser: () => undefined, addHook: () => undefined,
    hasRoute: ({ url }) => url === optionsUrl, route: (route) => void registered.push(route) };
}

const diskOnFire = new Error("disk on fire");

function routes(router: ConnectRouter): void {
  router.service(GreenhouseService, { getReading: () => Promise.reject(diskOnFire) });
}

test.each([
  { name: "without a prefix", prefix: "", optionsUrl: "/*" },
  { name: "with a prefix", prefix: "/api", optionsUrl: "/api/*" },
])("a plugin $name registers no second OPTIONS route for a URL", async ({ prefix, optionsUrl }) => {
  const app = createApplication({ prefix, optionsUrl });
  const selector = `${GreenhouseService.typeName}.GetReading`;
  const pattern = { case: "custom", value: { kind: "*", path: "/{sensor=**}" } } as const;
  await fastifyConnectPlugin(app, { routes, rest: { rules: [{ selector, pattern }] } });
  const route = app.registered.find(({ url }) => url === "/*");
  expect(route?.method.toSorted()).toEqual(["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]);
});

test("two RPCs with one path share a route for both HTTP methods", async () => {
  const app = createApplication({});
  const [get, put] = ["GetReading", "WaterBed"].map((name) => `${GreenhouseService.typeName}.${name}`);
  const rules = [
    { selector: String(get), pattern: { case: "get", value: "/v1/place" } },
    { selector: String(put), pattern: { case: "put", value: "/v1/place" } },
  ] as const;
  await fastifyConnectPlugin(app, { routes, rest: { rules } });
  const found = app.registered.filter(({ url }) => url === "/v1/place");
  expect(found.map(({ method }) => method.toSorted())).toEqual([["GET", "HEAD", "PUT"]]);
});

test("the plugin serves its paths below Fastify's prefix and requestPathPrefix", async () => {
  const app = createApplication({ prefix: "/api" });
  await fastifyConnectPlugin(app, { routes, requestPathPrefix: "/b" });
  const urls = app.registered.map(({ url }) => url);
  expect({ urls, logged: app.logged }).toEqual({
    urls: expect.arrayContaining([`/b/${GreenhouseService.typeName}/GetReading`]),
    logged: [],
  });
});

test.each<[name: string, isSet: boolean, expected: object]>([
  ["a configured onFault", true, { faults: [diskOnFire], logged: [] }],
  ["the application's log (the default)", false, { faults: [], logged: ["a handler or an interceptor failed"] }],
])("the plugin reports faults to %s only", async (_name, isSet, expected) => {
  const app = createApplication({});
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  await fastifyConnectPlugin(app, { routes, ...(isSet && { onFault }) });
  const server = createServer((raw, response) => {
    const end = (): unknown => response.end();
    const reply = { raw: response, sent: false, getHeaders: () => ({}), callNotFound: end, send: end };
    app.registered[0]?.handler({ raw, log: app.log }, reply);
  });
  await using started = await startOnLoopback(server);
  expect(await fetch(`${started.baseUrl}/sensors/7/reading`)).toMatchObject({ status: 500 });
  expect({ faults, logged: app.logged }).toEqual(expected);
});

test("Fastify gets the error for a body that a hook has read", async () => {
  const app = createApplication({});
  await fastifyConnectPlugin(app, { routes });
  const [route = expect.unreachable("the plugin registered no route")] = app.registered;
  const server = createServer((raw, response) => {
    const reply = {
      raw: response,
      sent: false,
      getHeaders: () => ({}),
      callNotFound: () => response.end("not found"),
      send: ({ message }: Error) => response.end(message),
    };
    text(raw)
      .then(() => route.handler({ raw, log: app.log }, reply))
      .catch((error: unknown) => response.end(`the handler failed: ${String(error)}`));
  });
  await using started = await startOnLoopback(server);
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${started.baseUrl}/beds/7:water`, { method: "POST", headers, body: "{}" });
  expect(await response.text()).toMatch(/^the request body was read before the gateway got it/);
});
