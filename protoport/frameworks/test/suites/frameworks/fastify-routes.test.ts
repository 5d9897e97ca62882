import { createServer, request as startRequest } from "node:http";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type RestOptions } from "../../../../gateway/src/index.ts";
import { LibraryService } from "../../../../testing/src/gen/library/v1/library_pb.ts";
import { listenOnLoopback } from "@protoport/testing/http";
import { type FastifyLike, fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, pathOf, requireFrom } from "./frameworks.ts";

// The routes that the plugin registers in Fastify's router.

type Reply = { code(status: number): Reply; send(body: unknown): Reply };

interface Application extends Omit<FastifyLike, "addHook"> {
  register(plugin: unknown, options?: object): void;
  get(path: string, handler: (request: unknown, reply: Reply) => unknown): void;
  post(path: string, handler: (request: unknown, reply: Reply) => unknown): void;
  options(path: string, handler: (request: unknown, reply: Reply) => unknown): void;
  inject(
    request: object,
  ): Promise<{ statusCode: number; headers: Readonly<Record<string, unknown>>; body: string; json(): unknown }>;
  listen(options: object): Promise<string>;
  ready(): Promise<void>;
  close(): Promise<void>;
  addHttpMethod?(name: string): void;
  printRoutes(options: object): string;
  addHook(name: "onRequest", hook: (request: unknown, reply: Reply) => Promise<unknown>): void;
}

/** A greenhouse that returns the sensor's name, with HTTP rules for these templates. */
function withTemplates(templates: readonly string[], method = "GET"): ReturnType<typeof options> {
  const toBinding = (path: string) => ({ pattern: { case: "custom", value: { kind: method, path } } as const });
  const additionalBindings = templates.map(toBinding);
  const selector = `${GreenhouseService.typeName}.GetReading`;
  return options({ rules: [{ selector, ...additionalBindings[0], additionalBindings: additionalBindings.slice(1) }] });
}

function options(rest: RestOptions): ReturnType<typeof greenhouse> & { rest: RestOptions } {
  return { ...greenhouse({ getReading: ({ sensor }) => ({ sensor }) }), rest };
}

/** A gateway without RPCs, with an endpoint at the path of other gateways. */
const endpointOf = (method: string, more: object): object => ({
  routes: () => undefined,
  endpoints: [{ path: "/v1/place", httpMethods: [method], open: true, handle }],
  ...more,
});

const allow = (origin: string): object => ({ cors: { origins: [origin] } });

async function statusOf(baseUrl: string, path: string): Promise<[number | undefined, string]> {
  const { hostname, port } = new URL(baseUrl);
  const request = startRequest({ hostname, port, path, agent: false }).end();
  const [response] = await once(request, "response");
  const body = (await response.toArray()).join("");
  return [response.statusCode, response.statusCode === 200 ? body : ""];
}

const page = (_request: unknown, reply: Reply): unknown => reply.send("a page");

async function bodyOf(app: Application, url: string, method = "GET"): Promise<string> {
  const { statusCode, body } = await app.inject({ method, url, payload: method === "POST" ? {} : undefined });
  return statusCode === 200 ? body : String(statusCode);
}

const handle = (): object => ({ httpStatus: 200, body: "an endpoint" });

// oxfmt-ignore
const paths = [
  "/", "/a", "/a/", "/v1", "/v1/", "/v1/a", "/v1/a/", "/v1/a/b", "/v1/a/b/c", "/v1/a:read", "/v1/a:read:read",
  "/v1/:read", "/v1/a:%72ead", "/v1/a:other", "/v1/a:read-all.v1", "/v1/a%3Ab", "/v1/a:b", "/v1/a:x%3Ay", "/v1/a.b-c",
  "/v1/a%2Fb", "/v1/a%3Aread", "/v1/%C3%BC", "/v1/%C3%BC/a", "/v1/%C3%BC:read", "/v1/a:%C3%BC", "/v1/x%2Ay",
  "/v1/a+b@c", "/v1:read", "/v1/beds:read", "/v1/beds/a:read", "/v1/beds/a/b:read", "/v1/beds/a/reading", "/%761/a",
  "/v1//a", "/v1/..", "/v1/%zz",
];

// oxfmt-ignore
const templates = [
  "/{sensor}", "/{sensor=**}", "/v1/{sensor}", "/v1/{sensor}:read", "/v1/{sensor} /v1/{sensor}:read", "/v1/{sensor=**}",
  "/v1/{sensor=**}:read", "/v1/{sensor=beds/*}:read /v1/{sensor=beds/**}", "/v1/{sensor=beds/*}/reading",
  "/v1/{sensor=**}/reading", "/v1/*/{sensor}", "/v1/beds:read", "/v1/a+b@c", "/v1/%C3%BC/{sensor} /v1/%C3%BC /v1/x%2Ay",
  "/v1/%C3%BC:read", "/v1/{sensor}:%C3%BC", "/v1/{sensor}:read-all.v1", "/v1/a%3Ab /v1/{sensor}:x%3Ay",
];

describe.each(Object.entries(folders))("Fastify, %s major version", (_version, folder) => {
  const require = requireFrom(folder);
  const fastify: (options?: object) => Application = require("fastify");

  function create(settings?: object): Application {
    const app = fastify(settings);
    onTestFinished(() => app.close());
    return app;
  }

  test.each(templates)("with the template %s, the plugin responds like a gateway without Fastify", async (rules) => {
    const own = withTemplates(rules.split(" "));
    const alone = createServer(createGateway(own).handler);
    onTestFinished(() => void alone.close());
    const urlAlone = await listenOnLoopback(alone);
    const app = create();
    app.register(fastifyConnectPlugin, own);
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const served = [];
    for (const path of paths) {
      const [httpStatus, body] = await statusOf(urlAlone, path);
      if (httpStatus === 200) served.push(path);
      // Fastify responds to invalid escapes with 400.
      expect([path, ...(await statusOf(url, path))]).toEqual([path, path === "/v1/%zz" ? 400 : httpStatus, body]);
    }
    expect(served).not.toEqual([]);
  });

  test.each(["before", "after"])("a catch-all route added %s the plugin serves paths without RPCs", async (when) => {
    const app = create();
    if (when === "before") app.get("/*", page);
    app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"]));
    if (when === "after") app.register(async (child: Application) => child.get("/*", page));
    expect(await bodyOf(app, "/v1/palm")).toBe('{"sensor":"palm"}');
    expect(await bodyOf(app, pathOf("GetReading"), "POST")).toBe("{}");
    expect([await bodyOf(app, "/v1/palm/more"), await bodyOf(app, "/")]).toEqual(["a page", "a page"]);
  });

  test("the application can serve other HTTP methods on a gateway path", async () => {
    const app = create();
    app.register(fastifyConnectPlugin, greenhouse({ waterBed: ({ bed }) => ({ bed }) }));
    app.register(async (child: Application) => child.get("/beds/:bed", page));
    expect(await bodyOf(app, "/beds/7:water", "POST")).toBe('{"bed":"7"}');
    expect([await bodyOf(app, "/beds/7:water"), await bodyOf(app, "/beds/7", "PUT")]).toEqual(["a page", "404"]);
  });

  test("two plugins serve different services below the same first path segments", async () => {
    const app = create();
    app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor=books/*/sensors/*}", "/v1/{sensor=books/*}:read"]));
    app.register(fastifyConnectPlugin, {
      routes: (router: ConnectRouter) => void router.service(LibraryService, { getBook: ({ id }) => ({ id }) }),
    });
    expect(await bodyOf(app, "/v1/books/7/sensors/b")).toBe('{"sensor":"books/7/sensors/b"}');
    expect(await bodyOf(app, "/v1/books/7:read")).toBe('{"sensor":"books/7"}');
    expect(await bodyOf(app, "/v1/books/7")).toBe('{"id":"7"}');
    expect(await bodyOf(app, pathOf("GetReading"), "POST")).toBe("{}");
    expect(await bodyOf(app, `/${LibraryService.typeName}/GetBook`, "POST")).toBe("{}");
  });

  test("a service may be registered twice only below different prefixes", async () => {
    const app = create();
    const own = withTemplates(["/v1/{sensor}"]);
    app.register(fastifyConnectPlugin, { ...own, prefix: "/a", logLevel: "warn" });
    app.register(fastifyConnectPlugin, { ...own, requestPathPrefix: "/b" });
    app.register(async (child: Application) => child.register(fastifyConnectPlugin, { ...own, prefix: "/d" }), {
      prefix: "/c",
    });
    app.register(fastifyConnectPlugin, { ...own, prefix: "/e", requestPathPrefix: "/f" });
    for (const prefix of ["/a", "/b", "/c/d", "/e/f"]) {
      expect(await bodyOf(app, `${prefix}/v1/palm`)).toBe('{"sensor":"palm"}');
      expect(await bodyOf(app, prefix + pathOf("GetReading"), "POST")).toBe("{}");
    }
    expect(await bodyOf(app, "/v1/palm")).toBe("404");
  });

  test.each([
    {
      owner: "another plugin",
      claim: (app: Application) => app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"])),
    },
    { owner: "the application", claim: (app: Application) => app.post(pathOf("GetReading"), page) },
  ])("a route of $owner at an RPC's own path is reported with the remedies", async ({ claim }) => {
    const app = fastify();
    claim(app);
    app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"]));
    await expect(app.ready()).rejects.toThrow(
      /already declared for route.* \(for greenhouse\.v1\.GreenhouseService\.\w+\): register the service in one plugin, or each plugin with another prefix, or remove the application's route$/,
    );
  });

  test("a Fastify context's hooks run only for plugins registered in it", async () => {
    const app = create();
    app.register(
      async (child: Application) => {
        child.addHook("onRequest", async (_request, reply) => reply.code(401).send("who?"));
        child.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"]));
      },
      { prefix: "/private" },
    );
    app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"]));
    expect(await bodyOf(app, "/private/v1/palm")).toBe("401");
    expect(await bodyOf(app, "/v1/palm")).toBe('{"sensor":"palm"}');
  });

  test("@fastify/cors serves OPTIONS despite a rule for all methods and paths", async () => {
    const app = create();
    app.register(require("@fastify/cors"), { origin: "https://shop.example" });
    app.register(fastifyConnectPlugin, withTemplates(["/{sensor=**}"], "*"));
    expect(await bodyOf(app, "/a/b", "DELETE")).toBe('{"sensor":"a/b"}');
    const headers = { origin: "https://shop.example", "access-control-request-method": "PUT" };
    expect((await app.inject({ method: "OPTIONS", url: "/a", headers })).statusCode).toBe(204);
  });

  test("the plugin keeps the application's OPTIONS route below a prefix", async () => {
    const app = create();
    app.register(
      async (child: Application) => {
        child.options("/*", page);
        child.register(fastifyConnectPlugin, withTemplates(["/{sensor=**}"], "*"));
      },
      { prefix: "/api" },
    );
    expect(await bodyOf(app, "/api/a/b", "DELETE")).toBe('{"sensor":"a/b"}');
    expect(await bodyOf(app, "/api/a/b", "OPTIONS")).toBe("a page");
  });

  test.each(["", "/api"])("below the prefix %j, each plugin decides on preflights of its methods", async (prefix) => {
    const plugins = [
      { ...withTemplates(["/v1/place"]), ...allow("https://a.example") },
      endpointOf("DELETE", allow("https://b.example")),
      endpointOf("POST", {}),
    ];
    const [first, second] = [create(), create()];
    for (const plugin of plugins) first.register(fastifyConnectPlugin, { ...plugin, prefix });
    // In another application, the first plugin is alone.
    second.register(fastifyConnectPlugin, { ...plugins[0], prefix });
    const allows = async (app: Application, origin: string, method: string): Promise<boolean> => {
      const headers = { origin, "access-control-request-method": method };
      const response = await app.inject({ method: "OPTIONS", url: `${prefix}/v1/place`, headers });
      const methods = String(response.headers["access-control-allow-methods"]).split(", ");
      return response.headers["access-control-allow-origin"] === origin && methods.includes(method);
    };
    const allowed: string[] = [];
    for (const [name, app] of Object.entries({ first, second }))
      for (const origin of ["https://a.example", "https://b.example"])
        for (const method of ["GET", "DELETE", "POST"])
          if (await allows(app, origin, method)) allowed.push(`${name} ${origin} ${method}`);
    expect(allowed).toEqual([
      "first https://a.example GET",
      "first https://b.example DELETE",
      "second https://a.example GET",
      // No plugin of this application serves POST, so that the call gets 405.
      "second https://a.example POST",
    ]);
  });

  test("an endpoint outside the prefix is not served, with a warning", async () => {
    const stream = new PassThrough({ encoding: "utf8" });
    const app = create({ logger: { stream, level: "warn" } });
    const endpoint = { path: "/page", open: true, handle };
    const endpoints = [endpoint, { ...endpoint, path: "/.well-known/page", atRoot: true }];
    app.register(fastifyConnectPlugin, { ...withTemplates(["/v1/{sensor}"]), endpoints, prefix: "/api" });
    app.register(fastifyConnectPlugin, { ...withTemplates(["/v1/{sensor}"]), endpoints, requestPathPrefix: "/other" });
    expect([await bodyOf(app, "/api/page"), await bodyOf(app, "/other/page")]).toEqual(["an endpoint", "an endpoint"]);
    expect(await bodyOf(app, "/.well-known/page")).toBe("an endpoint");
    const lines = String(stream.read()).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      "/.well-known/page is not served: it is outside the prefix /api of fastifyConnectPlugin",
    ]);
  });

  test("a path variable may have at most `maxParamLength` characters", async () => {
    const own = withTemplates(["/v1/{sensor}"]);
    const app = create();
    app.register(fastifyConnectPlugin, own);
    expect(await bodyOf(app, `/v1/${"a".repeat(100)}`)).not.toBe("404");
    expect(await bodyOf(app, `/v1/${"a".repeat(101)}`)).toBe(folder === folders.oldest ? "404" : "414");
    const limit = { maxParamLength: 500 };
    const longer = create(folder === folders.oldest ? limit : { routerOptions: limit });
    longer.register(fastifyConnectPlugin, own);
    expect(await bodyOf(longer, `/v1/${"a".repeat(101)}`)).not.toBe("404");
  });

  test("a rule with an HTTP method unknown to Fastify requires `addHttpMethod`", async () => {
    const own = withTemplates(["/v1/{sensor}"], "SEARCH");
    const app = create();
    app.addHttpMethod?.("SEARCH");
    app.register(fastifyConnectPlugin, own);
    expect(await bodyOf(app, "/v1/palm", "SEARCH")).toBe('{"sensor":"palm"}');
    const without = fastify();
    without.register(fastifyConnectPlugin, own);
    const started = without.ready();
    // Version 4 has a fixed list, with this method.
    if (folder === folders.oldest) await started;
    else
      await expect(started).rejects.toThrow(
        "SEARCH method is not supported. (for greenhouse.v1.GreenhouseService.GetReading): call app.addHttpMethod before app.register,",
      );
  });

  test("an own route at an HTTP rule's path is reported with the RPC", async () => {
    const own = withTemplates(["/v1/other/{sensor}", "/v1/place/{sensor}"]);
    const app = create();
    app.get("/v1/place/:name", page);
    app.register(fastifyConnectPlugin, own);
    await expect(app.ready()).rejects.toThrow(
      /GET.*\/v1\/place\/:.* \(for greenhouse\.v1\.GreenhouseService\.GetReading\): remove the application's route, or add the RPC to rest.omit/,
    );
    const omitting = create();
    omitting.get("/v1/place/:name", page);
    const omit = [`${GreenhouseService.typeName}.GetReading`];
    omitting.register(fastifyConnectPlugin, { ...own, rest: { ...own.rest, omit } });
    expect(await bodyOf(omitting, "/v1/place/palm")).toBe("a page");
  });

  test("`printRoutes` prints the gateway's paths", async () => {
    const app = create();
    app.register(fastifyConnectPlugin, withTemplates(["/v1/{sensor}"]));
    await app.ready();
    const printed = app.printRoutes({ commonPrefix: false });
    expect(printed).toContain(`${pathOf("GetReading").slice(1)} (`);
    expect(printed).toMatch(/v1\/[^]*:p1 \(GET, HEAD\)/);
  });
});
