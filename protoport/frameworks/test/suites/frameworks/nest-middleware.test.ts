import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ConnectGateway, ConnectModule, type ConnectModuleOptions } from "../../../src/nestjs.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { pathOf } from "./frameworks.ts";
import { ask, Greenhouse, listen, nestVersions, type NestVersion, SensorModule } from "./nest-application.ts";

// Middleware that Nest modules configure, for own routes and for RPCs.

type Request = { readonly headers: Record<string, string | undefined>; readonly originalUrl: string; url: string };
type Response = { statusCode: number; setHeader(name: string, value: string): void; end(body: string): void };
type Middleware = (request: Request, response: Response, next: (error?: unknown) => void) => unknown;
type Route = string | { readonly path: string; readonly method: number };

interface Consumer {
  apply(...middleware: readonly unknown[]): Consumer;
  exclude(...routes: readonly Route[]): Consumer;
  forRoutes(...routes: readonly Route[]): Consumer;
}

function moduleWith({ nest }: NestVersion, configure: (consumer: Consumer) => unknown): new () => object {
  class MiddlewareModule {
    configure(consumer: Consumer): void {
      configure(consumer);
    }
  }
  nest.Module({})(MiddlewareModule);
  return MiddlewareModule;
}

const reading = "/sensors/palm/reading";
const getReading = pathOf("GetReading");
const json = { sensor: "palm", degreesCelsius: 21 };

/** Middleware that refuses callers without a key, as applications write it. */
// oxfmt-ignore
const refusals: readonly { name: string; create: (version: NestVersion) => unknown }[] = [
  { name: "throws UnauthorizedException from a class", create({ nest, require }) {
      class AuthMiddleware {
        use(...[{ headers }, , next]: Parameters<Middleware>): void {
          if (headers["x-key"] === undefined) throw new (require("@nestjs/common").UnauthorizedException)();
          next();
        }
      }
      nest.Injectable({})(AuthMiddleware);
      return AuthMiddleware;
    } },
  { name: "rejects", create: ({ require }): Middleware => async ({ headers }, _response, next) => {
      await new Promise(setImmediate);
      if (headers["x-key"] === undefined) throw new (require("@nestjs/common").UnauthorizedException)();
      next();
    } },
  { name: "passes an error to next", create:
      ({ require }): Middleware =>
      ({ headers }, _response, next) =>
        next(headers["x-key"] === undefined ? new (require("@nestjs/common").UnauthorizedException)() : undefined) },
  { name: "responds", create: (): Middleware => (request, response, next) => {
      if (request.headers["x-key"] !== undefined) return next();
      response.statusCode = 401;
      response.end("{}");
    } },
  { name: "responds and calls next", create: (): Middleware => (request, response, next) => {
      if (request.headers["x-key"] === undefined) {
        response.statusCode = 401;
        response.end("{}");
      }
      next();
    } },
];

function createClass(name: string): new () => object {
  const created = class {
    use(_request: Request, response: Response): void {
      response.statusCode = 401;
      response.end("{}");
    }
  };
  return Object.defineProperty(created, "name", { value: name });
}

describe.each(nestVersions)("module middleware in Nest, %s", (_name, version) => {
  const { RequestMethod } = version.require("@nestjs/common");

  async function start(configure: (consumer: Consumer) => unknown, provider = Greenhouse): Promise<string> {
    const imports = [SensorModule, moduleWith(version, configure)];
    return await listen(await version.create({ imports, onFault: () => undefined }, provider));
  }

  test.each(refusals)("that $name refuses callers of own routes and RPCs", async ({ create }) => {
    let handled = 0;
    class Counted extends Greenhouse {
      override getReading(request: { sensor: string }): object {
        handled += 1;
        return super.getReading(request);
      }
    }
    const url = await start((consumer) => consumer.apply(create(version)).forRoutes("*path"), Counted);
    for (const path of ["/echo", getReading]) {
      expect([path, await statusOf(url + path, {}, "{}")]).toEqual([path, 401]);
      expect([path, (await statusOf(url + path, { "x-key": "1" }, "{}")) < 300]).toEqual([path, true]);
    }
    expect([await statusOf(url + reading), await statusOf(url + reading, { "x-key": "1" })]).toEqual([401, 200]);
    expect(handled).toBe(2);
  });

  test.each<[name: string, configure: (consumer: Consumer) => Consumer, urls: readonly string[]]>(
    // oxfmt-ignore
    [
      ["all paths", (consumer) => consumer.forRoutes("*path"), ["/echo", reading, getReading]],
      ["a template's prefix", (consumer) => consumer.forRoutes("sensors/*path"), [reading]],
      ["a path variable", (consumer) => consumer.forRoutes("sensors/:id/reading"), [reading]],
      ["a service", (consumer) => consumer.forRoutes(`${GreenhouseService.typeName}/*path`), [getReading]],
      ["a method", (consumer) => consumer.forRoutes({ path: "*path", method: RequestMethod.POST }),
        ["/echo", getReading]],
      ["an own route", (consumer) => consumer.forRoutes("echo"), ["/echo"]],
      ["all paths except a service",
        (consumer) => consumer.exclude(`${GreenhouseService.typeName}/*path`).forRoutes("*path"), ["/echo", reading]],
    ],
  )("for %s runs once per request", async (_, configure, urls) => {
    const seen: string[] = [];
    const log: Middleware = ({ originalUrl }, _response, next) => {
      seen.push(originalUrl);
      next();
    };
    const url = await start((consumer) => configure(consumer.apply(log)));
    expect((await ask(`${url}/echo`, '{"to":"you"}')).slice(0, 2)).toEqual([201, { to: "you" }]);
    expect((await ask(url + reading)).slice(0, 2)).toEqual([200, json]);
    expect((await ask(url + getReading, '{"sensor":"palm"}')).slice(0, 2)).toEqual([200, json]);
    expect([await statusOf(`${url}/none`), seen.filter((path) => path !== "/none")]).toEqual([404, urls]);
  });

  test("runs in the modules' order before the gateway reads a body", async () => {
    const seen: string[] = [];
    const log =
      (name: string): Middleware =>
      (_request, _response, next) => {
        seen.push(name);
        next();
      };
    const url = await start((consumer) => {
      consumer.apply(log("first"), log("second")).forRoutes("*path");
      consumer.apply(log("third")).forRoutes("beds/*path");
    });
    // Nest's body parser would refuse this in another form, round the number, and limit the body to 100 KiB.
    expect((await ask(url + getReading, "{"))[1]).toMatchObject({ code: "invalid_argument" });
    expect((await ask(`${url}/beds/9007199254740993:water`, "{}"))[1]).toMatchObject({ bed: "9007199254740993" });
    expect((await ask(url + getReading, JSON.stringify({ sensor: "x".repeat(200_000) })))[0]).toBe(200);
    expect(seen).toEqual(["first", "second", "first", "second", "third", "first", "second"]);
  });

  test.each([["*path"], ["sensors/*path"], ["sensors/:id/reading"]])(
    "for %s runs for a target in absolute form",
    async (route) => {
      const seen: string[] = [];
      const auth: Middleware = ({ headers, originalUrl }, response, next) => {
        seen.push(originalUrl);
        // As in Express, `null` is not an error.
        if (headers["x-key"] !== undefined) return next(null);
        response.statusCode = 401;
        response.end("{}");
      };
      const { hostname, port } = new URL(await start((consumer) => consumer.apply(auth, auth).forRoutes(route)));
      const address = { address: hostname, port: Number(port) };
      const path = `http://x${reading}`;
      const statuses: number[] = [];
      for (const key of [[], [["x-key", "1"] as const]]) {
        const header = [["connection", "close"] as const, ...key];
        statuses.push((await exchangeHttp1(address, { httpMethod: "GET", path, header })).httpStatus);
      }
      expect(statuses).toEqual([401, 200]);
      // Middleware of Nest's adapter for Fastify gets the path that it is compared with.
      const seenPath = version.platform === "Fastify" ? reading : path;
      expect(seen).toEqual([seenPath, seenPath, seenPath]);
    },
  );

  test("prevents the start with an adapter that is not for Express or Fastify", async () => {
    const refusing = moduleWith(version, (consumer) =>
      consumer.apply(refusals.find(({ name }) => name === "responds")?.create(version)).forRoutes("*path"),
    );
    const app = await version.create({ imports: [SensorModule, refusing] });
    Reflect.set(app.getHttpAdapter(), "getType", () => "koa");
    await expect(listen(app)).rejects.toThrow("middleware of modules cannot run for RPCs with Nest's adapter for koa");
  });

  describe("with a global prefix", () => {
    const answer = { httpStatus: 200, body: "a page" };
    const page = { path: "/.well-known/page", atRoot: true, open: true, handle: () => answer };

    async function startPrefixed(
      prefix: string,
      routes: readonly string[],
      options: Partial<ConnectModuleOptions> = {},
      exclude: readonly string[] = [],
    ): Promise<string> {
      const refuse = refusals.find(({ name }) => name === "responds")?.create(version);
      const configured = moduleWith(version, (consumer) => consumer.apply(refuse).forRoutes(...routes));
      const app = await version.create({ imports: [SensorModule, configured], ...options });
      app.setGlobalPrefix(prefix, { exclude });
      return await listen(app);
    }

    test.each([["*path"], ["sensors/*path"], ["sensors/:id/reading"], [getReading]])(
      "for %s prevents the start if its RPCs are outside the prefix",
      (route) =>
        expect(startPrefixed("/api/", [route])).rejects.toThrow(
          /^\/\S+ would skip middleware of modules for \/api\/\S+, because the global prefix does not apply to RPCs. Set the gateway's option requestPathPrefix to "\/api", add the path to exclude of app.setGlobalPrefix, or list the middleware's class in ignoredMiddleware$/,
        ),
    );

    test.each<[name: string, prefix: string, options: Partial<ConnectModuleOptions>, exclude: readonly string[]]>([
      ["requestPathPrefix", "/api", { requestPathPrefix: "/api", endpoints: [page] }, []],
      ["exclude", "", {}, ["*path"]],
    ])("runs for its RPCs if %s is set", async (_, prefix, options, exclude) => {
      const url = await startPrefixed("api", ["*path"], options, exclude);
      expect(await statusOf(url + prefix + reading)).toBe(401);
      expect(await statusOf(url + prefix + reading, { "x-key": "1" })).toBe(200);
    });

    test("prevents the start if exclude lists an RPC's path, but one of two classes has only the prefix", async () => {
      const [everywhere, Sensed] = [createClass("Everywhere"), createClass("Sensed")];
      const startExcluding = async (exclude: readonly string[]): Promise<string> => {
        const configured = moduleWith(version, (consumer) => {
          consumer.apply(everywhere).forRoutes("*path");
          consumer.apply(Sensed).forRoutes("sensors/*path");
        });
        const app = await version.create({ imports: [SensorModule, configured] });
        app.setGlobalPrefix("api", { exclude });
        return await listen(app);
      };
      const others = [`${GreenhouseService.typeName}/:rpc`, "beds/:id"];
      await expect(startExcluding([...others, "sensors/:id/reading"])).rejects.toThrow(
        /^\/sensors\S+ would skip middleware of modules for \/api\/sensors\/\*path,/,
      );
      await expect(startExcluding([...others, "sensors/:id/other"])).rejects.toThrow("modules for /api/*path,");
      const url = await startExcluding([...others, "sensors/*path"]);
      expect([await statusOf(url + getReading, {}, "{}"), await statusOf(url + reading)]).toEqual([401, 401]);
    });

    test.each<[name: string, apply: (consumer: Consumer, ...middleware: readonly unknown[]) => Consumer]>([
      ["all paths", (consumer, ...middleware) => consumer.apply(...middleware)],
      ["all paths except one", (consumer, ...middleware) => consumer.apply(...middleware).exclude("none")],
    ])("for %s runs only for own routes if ignoredMiddleware lists its class", async (_, apply) => {
      const [ignored, Other] = [createClass("Ignored"), createClass("Other")];
      class Derived extends ignored {}
      class PassOn {
        use(...[, , next]: Parameters<Middleware>): void {
          next();
        }
      }
      const startWith = async (...middleware: readonly unknown[]): Promise<string> => {
        const configured = moduleWith(version, (consumer) => apply(consumer, ...middleware).forRoutes("*path"));
        const app = await version.create({ imports: [SensorModule, configured], ignoredMiddleware: [ignored, PassOn] });
        app.setGlobalPrefix("api");
        return await listen(app);
      };
      const url = await startWith(PassOn, ignored);
      expect([await statusOf(`${url}/api/echo`, {}, "{}"), await statusOf(url + reading)]).toEqual([401, 200]);
      for (const other of [Other, Derived, (...[, , next]: Parameters<Middleware>) => next()])
        await expect(startWith(ignored, other)).rejects.toThrow("or list the middleware's class in ignoredMiddleware");
    });

    test("for own routes does not run for its RPCs", async () => {
      const url = await startPrefixed("api", ["echo", "pages/:id"]);
      expect([await statusOf(`${url}/api/echo`, {}, "{}"), await statusOf(url + reading)]).toEqual([401, 200]);
    });
  });

  test("runs for both of two gateways, which keep their paths", async () => {
    const seen: string[] = [];
    const log: Middleware = ({ originalUrl }, _response, next) => {
      seen.push(originalUrl);
      next();
    };
    const services = [{ service: GreenhouseService, provider: Greenhouse }];
    const other = ConnectModule.forRoot({ services, imports: [SensorModule], requestPathPrefix: "/other" });
    class OtherModule {
      readonly name = "other";
    }
    version.nest.Module({ imports: [other] })(OtherModule);
    const logs = moduleWith(version, (consumer) => consumer.apply(log).forRoutes("*path"));
    const app = await version.create({ imports: [SensorModule, OtherModule, logs] });
    for (const gateway of gatewaysOf(app)) gateway.mount(app);
    await app.listen(0, "127.0.0.1");
    const url = await app.getUrl();
    for (const path of [reading, `/other${reading}`]) expect((await ask(url + path)).slice(0, 2)).toEqual([200, json]);
    expect(seen).toEqual([reading, `/other${reading}`]);
  });
});

function gatewaysOf(app: object): readonly ConnectGateway[] {
  return Reflect.get(app, "get").call(app, ConnectGateway, { each: true, strict: false });
}

async function statusOf(url: string, header: Record<string, string> = {}, body?: string): Promise<number> {
  const headers = { "content-type": "application/json", connection: "close", ...header };
  const response = await fetch(url, body === undefined ? { headers } : { method: "POST", body, headers });
  await response.text();
  return response.status;
}
