import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ConnectRouter, ContextKey } from "@connectrpc/connect";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createTempFolder } from "@protoport/testing/process";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { ConnectGateway, type ConnectModuleOptions } from "../../../src/nestjs.ts";
import { noteKey, pathOf, pluginFolder, pluginsOfFastify, requireFrom } from "./frameworks.ts";
import { type Application as NestApplication, Greenhouse, nestVersions } from "./nest-application.ts";
import { type Ask, middlewares, noteOf, origin, surround } from "./usual-middleware.ts";
import { type Application as Fastify, noteOf as noteOfPlugins, plugins } from "./usual-plugins.ts";

// Common Express middleware, and common Fastify plugins, in Nest on these platforms.

/** A provider that returns what middleware has found out about the caller. */
class Nursery extends Greenhouse {
  override getReading(
    { sensor }: { sensor: string },
    context?: { values: { get(key: ContextKey<string>): string } },
  ): object {
    return { sensor: sensor + context?.values.get(noteKey) };
  }
}

const versionsOn = (name: string): typeof nestVersions => nestVersions.filter(([, nest]) => nest.platform === name);

// oxfmt-ignore
const ways: readonly {
  way: string;
  prefix: string;
  options: Partial<ConnectModuleOptions>;
  prepare: (app: NestApplication) => void;
}[] = [
  { way: "at the root", prefix: "", options: {}, prepare: () => undefined },
  { way: "below a prefix", prefix: "/api", options: { requestPathPrefix: "/api" }, prepare: () => undefined },
  { way: "at the root of an application with a global prefix", prefix: "", options: {},
    prepare: (app) => app.setGlobalPrefix("pages") },
];

async function start(app: NestApplication, prefix: string): Promise<Ask> {
  await app.listen(0, "127.0.0.1");
  const url = await app.getUrl();
  const ask: Ask = async (path, { headers, ...init } = {}) => {
    const header = { "content-type": "application/json", cookie: "who=ada", origin, connection: "close", ...headers };
    const response = await fetch(url + path, { ...init, headers: header });
    return [response.status, await response.text(), response.headers];
  };
  const [httpStatus, body] = await ask(prefix + pathOf("GetReading"), { method: "POST", body: '{"sensor":"door"}' });
  expect([httpStatus, body]).toEqual([200, expect.stringContaining("door")]);
  expect((await ask(`${prefix}/sensors/palm/reading`))[1]).toContain("palm");
  return ask;
}

describe.each(versionsOn("Express"))("Nest, %s", (_version, { create }) => {
  const load = requireFrom(pluginFolder);

  describe.each(ways)("the gateway $way", ({ prefix, options, prepare }) => {
    test.each(middlewares)("serves calls through $name if mounted after it", async (middleware) => {
      const surroundings = await surround();
      const app = await create({ ...options, contextValues: noteOf }, Nursery);
      prepare(app);
      app.use(middleware.create(load, surroundings));
      middleware.addRoutes?.(app.getHttpAdapter().getInstance());
      app.get(ConnectGateway).mount(app);
      const ask = await start(app, prefix);
      await middleware.check(ask, surroundings);
      await middleware.checkCall?.(ask, `${prefix}/sensors/palm/reading`, surroundings);
    });

    test.each(middlewares)("serves calls if mounted before $name in the application", async (middleware) => {
      const surroundings = await surround();
      const app = await create({ ...options, contextValues: noteOf }, Nursery);
      prepare(app);
      app.get(ConnectGateway).mount(app);
      app.use(middleware.create(load, surroundings));
      middleware.addRoutes?.(app.getHttpAdapter().getInstance());
      await middleware.check(await start(app, prefix), surroundings);
    });
  });
});

// Nest has its own form parser, and version 12 loads its own copy of @fastify/multipart.
const pluginsInNest = plugins.filter(({ name }) => name !== "formbody" && name !== "multipart");

describe.each(versionsOn("Fastify"))("Nest, %s", (_version, { create, createWithoutGateway }) => {
  const requirePlugin = pluginsOfFastify("newest");

  describe.each(ways)("the gateway $way", ({ prefix, options, prepare }) => {
    test.each(["after", "before"].flatMap((when) => pluginsInNest.map((plugin) => ({ when, ...plugin, plugin }))))(
      "serves calls if mounted $when @fastify/$name in the application",
      async ({ when, name, plugin }) => {
        using files = createTempFolder();
        writeFileSync(files.file("file.txt"), "a file");
        const app = await create(options);
        prepare(app);
        const instance = app.getHttpAdapter().getInstance();
        if (when === "before") app.get(ConnectGateway).mount(app);
        await app.register?.(requirePlugin(name), plugin.options?.(files.path) ?? {});
        instance.register(async (child: Fastify) => plugin.addRoutes?.(child));
        if (when === "after") app.get(ConnectGateway).mount(app);
        await start(app, prefix);
        await plugin.check(instance);
      },
    );
  });

  test("Fastify plugin hooks do not run for the mounted gateway's calls", async () => {
    const app = await create();
    await app.register?.(requirePlugin("rate-limit"), { max: 1 });
    app.get(ConnectGateway).mount(app);
    expect((await (await start(app, ""))("/sensors/palm/reading"))[0]).toBe(200);
  });

  test.each(pluginsInNest)("hooks of @fastify/$name run for calls that fastifyConnectPlugin serves", async (plugin) => {
    using files = createTempFolder();
    writeFileSync(files.file("file.txt"), "a file");
    const app = await createWithoutGateway(Nursery);
    const instance = app.getHttpAdapter().getInstance();
    await app.register?.(requirePlugin(plugin.name), plugin.options?.(files.path) ?? {});
    instance.register(async (child: Fastify) => plugin.addRoutes?.(child));
    const routes = (router: ConnectRouter): unknown => router.service(GreenhouseService, app.get(Nursery));
    await app.register?.(fastifyConnectPlugin, { routes, contextValues: noteOfPlugins });
    await start(app, "");
    const url = "/sensors/palm/reading";
    const call = await instance.inject({ method: "GET", url, headers: { origin, cookie: "who=ada" } });
    await plugin.check(instance);
    await plugin.checkCall?.(call, instance, url);
  });
});
