import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort, within } from "@protoport/testing";
import { type ApplicationParts, type NestGarden, nestVersions, type NestVersion } from "./nest-garden.ts";

// Strategies that are mounted in Nest applications: global guards, middleware of modules, and the application's close.

const tree = "/v1/beds/1/trees/7";
const open = { "x-key": "open" };

async function listen({ app, strategy }: NestGarden): Promise<string> {
  strategy.mount(app);
  await app.startAllMicroservices();
  await app.listen(0, "127.0.0.1");
  return await app.getUrl();
}

async function statusOf(url: string, header: Record<string, string> = open): Promise<number> {
  const response = await fetch(url, { headers: { connection: "close", ...header } });
  await response.text();
  return response.status;
}

class DenyAll {
  canActivate(): boolean {
    return false;
  }
}

const passOn = (_request: unknown, _response: unknown, next: () => void): void => next();

// oxfmt-ignore
const guards: readonly { name: string; label: string; parts: (version: NestVersion) => Partial<ApplicationParts> }[] = [
  { name: "useGlobalGuards", label: "DenyAll",
    parts: () => ({ prepare: (app) => app.useGlobalGuards(new DenyAll()) }) },
  { name: "APP_GUARD", label: "DenyAll",
    parts: ({ require }) => ({ providers: [{ provide: require("@nestjs/core").APP_GUARD, useClass: DenyAll }] }) },
  { name: "APP_GUARD for each request", label: "DenyAll", parts: ({ require }) => ({ providers: [
        { provide: require("@nestjs/core").APP_GUARD, useClass: DenyAll,
          scope: require("@nestjs/common").Scope.REQUEST },
      ],
    }) },
];

describe.each(nestVersions)("a mounted strategy in Nest, %s", (_name, version) => {
  const { create } = version;

  describe.each(guards)("with $name", ({ label, parts }) => {
    test("refuses calls as own routes do if the guards are inherited", async () => {
      const url = await listen(await create({}, parts(version)));
      expect([await statusOf(`${url}/page`), await statusOf(url + tree)]).toEqual([403, 403]);
    });

    test("is refused by mount if the guards are not inherited", async () => {
      const { app, strategy } = await create({}, { ...parts(version), hybrid: {} });
      expect(() => strategy.mount(app)).toThrow(
        `RPCs would skip global guards of the application: ${label} (global). Call app.connectMicroservice({ strategy }`,
      );
    });
  });

  test.each([
    { name: "inherits guards", hybrid: { inheritAppConfig: true } },
    { name: "does not inherit guards", hybrid: {} },
  ])("prevents the start if it $name and a guard is added after mount", async ({ hybrid }) => {
    const { app, strategy } = await create({}, { hybrid });
    strategy.mount(app);
    app.useGlobalGuards(new DenyAll());
    await app.startAllMicroservices();
    await expect(app.listen(0, "127.0.0.1")).rejects.toThrow(
      "RPCs would skip global guards of the application: DenyAll",
    );
  });

  test("runs a guard that is added after connectMicroservice, before mount", async () => {
    const garden = await create();
    garden.app.useGlobalGuards(new DenyAll());
    const url = await listen(garden);
    expect([await statusOf(`${url}/page`), await statusOf(url + tree)]).toEqual([403, 403]);
  });

  test.each<{ name: string; isDeferred: boolean }>([
    { name: "mount and connectMicroservice", isDeferred: false },
    { name: "a deferred initialization", isDeferred: true },
  ])("prevents the start if a guard is added after $name", async ({ isDeferred }) => {
    const { app, strategy } = await create({}, { hybrid: null });
    strategy.mount(app);
    app.connectMicroservice({ strategy }, { inheritAppConfig: true, deferInitialization: isDeferred });
    if (isDeferred) await app.startAllMicroservices();
    app.useGlobalGuards(new DenyAll());
    if (!isDeferred) await app.startAllMicroservices();
    await expect(app.listen(0, "127.0.0.1")).rejects.toThrow(
      "RPCs would skip global guards of the application: DenyAll (global). Call app.connectMicroservice",
    );
  });

  test("is refused by mount after its start", async () => {
    const { app, strategy } = await create({ listen: { host: "127.0.0.1", port: 0 } });
    await app.startAllMicroservices();
    app.useGlobalGuards(new DenyAll());
    expect(() => strategy.mount(app)).toThrow("call strategy.mount(app) before app.startAllMicroservices(),");
  });

  test("runs a guard that is added before a deferred initialization", async () => {
    const garden = await create({}, { hybrid: { inheritAppConfig: true, deferInitialization: true } });
    garden.strategy.mount(garden.app);
    garden.app.useGlobalGuards(new DenyAll());
    await garden.app.startAllMicroservices();
    await garden.app.listen(0, "127.0.0.1");
    expect(await statusOf((await garden.app.getUrl()) + tree)).toBe(403);
  });

  test("runs the middleware of modules for its RPCs", async () => {
    const seen: string[] = [];
    type Request = { readonly headers: Record<string, string>; readonly originalUrl: string };
    const auth = (
      { headers, originalUrl }: Request,
      response: { statusCode: number; end(): void },
      next: () => void,
    ) => {
      seen.push(originalUrl);
      if (headers["x-token"] !== undefined) return next();
      response.statusCode = 401;
      response.end();
    };
    const configure = (consumer: object): unknown =>
      Reflect.get(consumer, "apply").call(consumer, auth).forRoutes("*path");
    const url = await listen(await create({}, { configure }));
    for (const path of ["/page", tree])
      expect([await statusOf(url + path), await statusOf(url + path, { ...open, "x-token": "1" })]).toEqual([401, 200]);
    expect(seen).toEqual(["/page", "/page", tree, tree]);
  });

  test.each([
    { name: "before init", isInitializedFirst: false },
    { name: "after init", isInitializedFirst: true },
  ])("prevents a start $name if a global prefix keeps middleware from its RPCs", async ({ isInitializedFirst }) => {
    const configure = (consumer: object): unknown =>
      Reflect.get(consumer, "apply").call(consumer, passOn).forRoutes("*path");
    const { app, strategy } = await create({}, { configure });
    app.setGlobalPrefix("api");
    strategy.mount(app);
    const start = async (): Promise<void> => {
      if (isInitializedFirst) await app.init();
      await app.startAllMicroservices();
      await app.listen(0, "127.0.0.1");
    };
    await expect(start()).rejects.toThrow("would skip middleware of modules for /api/*path, because the global prefix");
  });

  test("starts with a global prefix if ignoredMiddleware lists all classes that would run", async () => {
    class Ignored {
      use(_request: unknown, response: { statusCode: number; end(): void }): void {
        response.statusCode = 401;
        response.end();
      }
    }
    class Other extends Ignored {}
    const start = async (...middleware: readonly object[]): Promise<string> => {
      const configure = (consumer: object): unknown =>
        Reflect.get(consumer, "apply")
          .call(consumer, ...middleware)
          .forRoutes("*path");
      const garden = await create({ ignoredMiddleware: [Ignored] }, { configure });
      garden.app.setGlobalPrefix("api");
      return await listen(garden);
    };
    const url = await start(Ignored);
    expect([await statusOf(`${url}/api/page`), await statusOf(url + tree)]).toEqual([401, 200]);
    await expect(start(Ignored, Other)).rejects.toThrow("would skip middleware of modules for /api/*path");
  });

  test("admit of a mounted strategy that also listens gets each port's clients", async () => {
    const peers: string[] = [];
    const port = await freePort();
    const gateway = { admit: ({ peer }: { peer: { address: string } }) => void peers.push(peer.address) };
    const listening = { host: "127.0.0.1", port };
    const garden = await create({ gateway, listen: listening }, { fastify: { trustProxy: ["127.0.0.1"] } });
    Reflect.get(garden.app, "set")?.call(garden.app, "trust proxy", ["127.0.0.1"]);
    const header = { ...open, "x-forwarded-for": "192.0.2.1" };
    for (const url of [await listen(garden), `http://127.0.0.1:${port}`])
      expect(await statusOf(url + tree, header)).toBe(200);
    expect(peers).toEqual(["192.0.2.1", "127.0.0.1"]);
    const { app } = await create({ gateway: { clientAddress: () => "192.0.2.2" }, listen: listening });
    await expect(app.startAllMicroservices()).rejects.toThrow(
      'listen() would ignore the option "clientAddress": set trustedProxies, or pass gateway.handler to a server',
    );
  });

  test.each(["/v1/trees?pageSize=-1", "/garden.v1.Garden/ListTrees"])(
    "app.close aborts an endless stream of %s after closeTimeoutMs",
    async (path) => {
      const garden = await create({ closeTimeoutMs: 50 });
      const url = await listen(garden);
      const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 15]), Buffer.from('{"pageSize":-1}')]);
      const headers = { ...open, "content-type": "application/connect+json" };
      const request = path.startsWith("/v1") ? { headers: open } : { method: "POST", headers, body };
      const text = (await fetch(url + path, request)).text();
      await within(garden.app.close(), "the end of close");
      expect(await text).toContain("the server is shutting down");
    },
  );

  test("app.close ends although a client does not read an endless stream", async () => {
    const garden = await create({ closeTimeoutMs: 50 });
    const url = await listen(garden);
    const request = get(`${url}/v1/trees?pageSize=-1`, { headers: open });
    request.on("error", () => undefined);
    onTestFinished(() => void request.destroy());
    await once(request, "response");
    await within(garden.app.close(), "the end of close");
  });
});

describe.each(nestVersions.filter(([name]) => name.endsWith("Fastify")))("HTTP/2 in Nest, %s", (_name, { create }) => {
  test("app.close ends although a client does not read an endless stream", async () => {
    const garden = await create({ closeTimeoutMs: 50 }, { fastify: { http2: true } });
    const socket = connectTcp(Number(new URL(await listen(garden)).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const session = connect("http://127.0.0.1", { createConnection: () => socket }).on("error", () => undefined);
    const stream = session.request({ ":path": "/v1/trees?pageSize=-1", ...open }).on("error", () => undefined);
    await once(stream, "data");
    stream.pause();
    socket.pause();
    await within(garden.app.close(), "the end of close");
  });
});
