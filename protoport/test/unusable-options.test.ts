import { describe, expect, test } from "vitest";
import { createBearerAuth, openTokenVerifier } from "../auth/src/index.ts";
import { fastifyConnectPlugin } from "../frameworks/src/fastify.ts";
import { ConnectModule, type ConnectModuleOptions } from "../frameworks/src/nestjs.ts";
import { createGateway } from "../gateway/src/index.ts";
import { createProxy } from "../proxy/src/create-proxy.ts";
import { silentLog } from "../telemetry/src/logs/index.ts";
import { descriptorSetOf } from "../testing/src/gateway/descriptor-set.ts";
import { KitchenSink } from "../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// Options with valid names that were ignored or caused a language error, such as "is not iterable".

const routes = (): void => undefined;
const address = { host: "127.0.0.1", port: 0 };
const upstream = { upstream: "http://127.0.0.1:1", descriptors: new Uint8Array() };
const handle = (): { httpStatus: number; body: string } => ({ httpStatus: 200, body: "" });
const forRoot = (options: ConnectModuleOptions): unknown => ConnectModule.forRoot(options);
const noVerifier = {};

class Page {
  readonly path = "/a";
  readonly open = true;
}

/** Calls a function as JavaScript does, without type checks. */
const call = (target: (...given: never) => unknown, ...given: readonly unknown[]): unknown =>
  Reflect.apply(target, undefined, given);

describe("an unusable option", () => {
  const listening = (more: object): unknown => createGateway({ routes, ...more }).listen(address);
  const endpoint = (more: object): unknown => call(createGateway, { routes, endpoints: [{ path: "/a", ...more }] });
  test.each<[name: string, give: () => unknown, message: string]>(
    // oxfmt-ignore
    [
      ["clientAddress with listen()", () => listening({ clientAddress: () => undefined }),
        'listen() would ignore the option "clientAddress": set trustedProxies, or pass gateway.handler to a server'],
      ["contextValues with listen()", () => listening({ contextValues: () => undefined }),
        'listen() would ignore the option "contextValues": set the values in admit, or pass gateway.handler to a server'],
      ["fallback with listen()", () => listening({ fallback: () => undefined }),
        'listen() would ignore the option "fallback": add endpoints, or pass gateway.handler to a server'],
      ["fallback with a proxy's listen()", async () => {
          const proxied = { ...upstream, descriptors: descriptorSetOf(KitchenSink.file) };
          const proxy = await createProxy({ upstreams: [proxied], fallback: () => undefined });
          try {
            await proxy.listen(address);
          } finally {
            await proxy.close();
          }
        }, 'listen() would ignore the option "fallback"'],
      ["fallback in a plugin", () => call(fastifyConnectPlugin, { prefix: "", log: {} }, { routes, fallback: 1 }),
        'the plugin would ignore the option "fallback"'],
      ["routes in a Nest module", () => call(forRoot, { services: [], routes }),
        'ConnectModule.forRoot would ignore the option "routes": list the providers in services'],
      ["a name of the proxies' fields that is unknown",
        () => call(createGateway, { routes, trustedProxies: { addresses: [], fields: "x-forwarded-for" } }),
        'trustedProxies.fields must be one of x-forwarded, forwarded, none, got "x-forwarded-for"'],
      ["a Nest module without services", () => call(forRoot, {}),
        'ConnectModule.forRoot requires the option "services"'],
      ["an endpoint without a handler", () => endpoint({ open: true }), 'endpoint /a requires the option "handle"'],
      ["an endpoint with a handler of another name", () => endpoint({ open: true, answer: handle }),
        'unknown option "answer"; endpoint /a accepts "path", '],
      ["an endpoint with an unknown name", () => endpoint({ open: true, handle, httpMethod: "POST" }),
        'unknown option "httpMethod", did you mean "httpMethods"?'],
      ["an endpoint whose handler is not a function", () => endpoint({ open: true, handle: "ok" }),
        "handle of endpoint /a must be a function, got string"],
      ["an endpoint class without a handler", () => call(createGateway, { routes, endpoints: [new Page()] }),
        'endpoint /a requires the option "handle"'],
      ["a value for routes that is not a function", () => call(createGateway, { routes: {} }),
        "routes must be a function that registers services, got object"],
      ["a value for endpoints that is not an array",
        () => call(createGateway, { routes, endpoints: { path: "/a", open: true, handle } }),
        'option "endpoints" of createGateway must be an array, got an object'],
      ["a value for limits that is not an object", () => call(createGateway, { routes, limits: 1 }),
        'option "limits" of createGateway must be an object, got number'],
      ["a value for jwt that is not an array", () => call(openTokenVerifier, { jwt: {} }, silentLog),
        'option "jwt" of openTokenVerifier must be an array, got an object'],
      ["a value for open that is not an array",
        () => call(createBearerAuth, noVerifier, { realm: "a", open: "shop.v1.Shop" }),
        'option "open" of createBearerAuth must be an array, got string'],
      ...[
        ["the path of an RPC without its first slash", "shop.v1.Shop/List", "/shop.v1.Shop/List"],
        ["a service with slashes around it", "/shop.v1.Shop/", "shop.v1.Shop"],
        ["all RPCs of a service by a wildcard", "/shop.v1.Shop/*", "shop.v1.Shop"],
        ["a service by a wildcard of selectors", "shop.v1.Shop.*", "shop.v1.Shop"],
      ].map(([name = "", given = "", meant = ""]): [string, () => unknown, string] => [
        `${name} in open`,
        () => call(createBearerAuth, noVerifier, { realm: "a", open: ["shop.v1.Other", given] }),
        `option "open" of createBearerAuth must name services (package.Service) and RPCs (/package.Service/Method), got "${given}", did you mean "${meant}"?`,
      ]),
      ["a number in open", () => call(createBearerAuth, noVerifier, { realm: "a", open: [1] }),
        "(/package.Service/Method), got number"],
      ["a value for upstreams that is not an array", () => call(createProxy, { upstreams: upstream }),
        'option "upstreams" of createProxy must be an array, got an object'],
      ["an upstream without descriptors",
        () => call(createProxy, { upstreams: [{ upstream: { addresses: "http://127.0.0.1:1" } }] }),
        'createProxy requires the option "upstreams[0].descriptors"'],
      ["a number as an upstream", () => call(createProxy, { upstreams: [{ ...upstream, upstream: 1 }] }),
        "upstreams[0].upstream of createProxy requires an object of options, got number"],
      ["an upstream without addresses",
        () => call(createProxy, { upstreams: [{ ...upstream, upstream: { tls: {} } }] }),
        'upstreams[0].upstream of createProxy requires the option "addresses"'],
      ["reflectionHeader without reflection",
        () => createProxy({ upstreams: [{ ...upstream, reflectionHeader: { "x-a": "b" } }] }),
        'upstreams[0] of createProxy would ignore the option "reflectionHeader": descriptors are not "reflection"'],
      ["reloadEveryMs without a source that changes",
        () => createProxy({ upstreams: [{ ...upstream, reloadEveryMs: 5 }] }),
        'upstreams[0] of createProxy would ignore the option "reloadEveryMs": descriptors are neither a file nor reflection'],
    ],
  )("%s is refused", async (_, give, message) => {
    const error: unknown = await (async () => await give())().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "ERR_OPTIONS", message: expect.stringContaining(message) });
  });
});
