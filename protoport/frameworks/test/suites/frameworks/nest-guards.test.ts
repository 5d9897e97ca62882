import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ConnectGateway } from "../../../src/nestjs.ts";
import { ask, Greenhouse, listen, nestVersions, Sensors } from "./nest-application.ts";
import type { Application, NestVersion } from "./nest-application.ts";

/** The class and the handler that the guards have seen. */
const seen: string[] = [];
let handled = 0;
beforeEach(() => {
  seen.length = 0;
  handled = 0;
});

interface Context {
  switchToHttp(): { getRequest(): { headers: Record<string, string> }; getResponse(): object };
  getClass(): { readonly name: string };
  getHandler(): { readonly name: string };
}

/** A guard that admits gardeners, as one for controllers would. */
class RoleGuard {
  canActivate(context: Context): boolean | Promise<boolean> {
    seen.push(`${context.getClass().name}.${context.getHandler().name}`);
    const { headers } = context.switchToHttp().getRequest();
    const isGardener = headers["x-role"] === "gardener";
    return headers["x-async"] === undefined ? isGardener : Promise.resolve(isGardener);
  }
}

class TrimPipe {
  transform(value: unknown): unknown {
    return value;
  }
}

class LogInterceptor {
  intercept(_context: unknown, next: { handle(): unknown }): unknown {
    return next.handle();
  }
}

class PageFilter {
  catch(error: unknown): never {
    throw error;
  }
}

interface Declared {
  readonly provider?: typeof Greenhouse;
  readonly providers?: readonly object[];
  configure?(this: void, app: Application): void;
}

/** Returns a provider whose methods are not shared, so that decorators do not change another test's provider. */
const createProvider = (): typeof Greenhouse =>
  class Palmhouse extends Greenhouse {
    override getReading(request: { sensor: string }): object {
      handled += 1;
      return super.getReading(request);
    }
    override async recordReadings(): Promise<object> {
      return {};
    }
  };

const decorateMethod = (
  decorate: ReturnType<NestVersion["nest"]["UseGuards"]>,
  type: typeof Greenhouse,
  name: string,
): void => decorate(type.prototype, name, { value: Reflect.get(type.prototype, name) });

type Case = { readonly name: string; declare(this: void, version: NestVersion): Declared };

// oxfmt-ignore
const guardCases: readonly Case[] = [
  { name: "on the provider", declare({ nest }) {
      const provider = createProvider();
      nest.UseGuards(RoleGuard)(provider);
      return { provider };
    } },
  { name: "on a method", declare({ nest }) {
      const provider = createProvider();
      decorateMethod(nest.UseGuards(RoleGuard), provider, "getReading");
      return { provider };
    } },
  { name: "given as an object", declare({ nest }) {
      const provider = createProvider();
      decorateMethod(nest.UseGuards(new RoleGuard()), provider, "getReading");
      return { provider };
    } },
  { name: "from useGlobalGuards", declare: () => ({ configure: (app) => app.useGlobalGuards(new RoleGuard()) }) },
  { name: "from APP_GUARD with useClass",
    declare: ({ require }) => ({ providers: [{ provide: require("@nestjs/core").APP_GUARD, useClass: RoleGuard }] }) },
  { name: "from APP_GUARD with useFactory", declare: ({ require }) => ({ providers: [{ provide: require("@nestjs/core").APP_GUARD, useFactory: () => new RoleGuard() }],
    }) },
];

const getReading = `/${GreenhouseService.typeName}/GetReading`;

/** Calls an RPC over REST, or with a body over Connect, and returns the HTTP status and an error's message. */
async function call(url: string, path: string, header: Record<string, string> = {}): Promise<readonly unknown[]> {
  const isRest = path.startsWith("/sensors/");
  const headers = { "content-type": "application/json", connection: "close", ...header };
  const response = await fetch(url + path, isRest ? { headers } : { method: "POST", body: "{}", headers });
  const body: { readonly code?: unknown; readonly message?: unknown } = JSON.parse(await response.text());
  return response.ok ? [response.status] : [response.status, body.message];
}

const roleOf = (target: object): unknown => Reflect.get(Reflect, "getMetadata")("role", target);

describe.each(nestVersions)("a guard in Nest, %s", (_name, version) => {
  const { nest, require } = version;

  async function start({ provider = createProvider(), providers, configure }: Declared): Promise<string> {
    const app = await version.create({ onFault: () => undefined }, provider, providers);
    configure?.(app);
    return await listen(app);
  }

  function startWith(...guards: readonly object[]): Promise<string> {
    const provider = createProvider();
    nest.UseGuards(...guards)(provider);
    return start({ provider });
  }

  test.each(guardCases)("$name runs before the handler of RPCs over REST and Connect", async ({ declare }) => {
    const url = await start(declare(version));
    for (const path of ["/sensors/palm/reading", getReading]) {
      expect(await call(url, path)).toEqual([403, "Forbidden resource"]);
      expect(await call(url, path, { "x-role": "gardener" })).toEqual([200]);
      expect(await call(url, path, { "x-role": "visitor", "x-async": "1" })).toEqual([403, "Forbidden resource"]);
    }
    expect([handled, new Set(seen)]).toEqual([2, new Set([expect.stringMatching(/^\w+\.getReading$/)])]);
  });

  test("runs for streams over HTTP", async () => {
    const baseUrl = await startWith(RoleGuard);
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions: { agent: false } });
    const client = createClient(GreenhouseService, transport);
    const first = async (headers: Record<string, string>, signal?: AbortSignal): Promise<unknown> => {
      const readings = client.watchReadings({}, { headers, ...(signal && { signal }) });
      return await readings[Symbol.asyncIterator]().next();
    };
    await expect(first({})).rejects.toThrow("[permission_denied] Forbidden resource");
    const reader = new AbortController();
    expect(await first({ "x-role": "gardener" }, reader.signal)).toMatchObject({ value: { sensor: "first" } });
    reader.abort();
    expect(seen).toEqual(["Palmhouse.watchReadings", "Palmhouse.watchReadings"]);
  });

  test("does not run after another guard refuses the call", async () => {
    class Never extends RoleGuard {}
    const url = await startWith({ canActivate: () => false }, Never);
    expect([await call(url, getReading), seen, handled]).toEqual([[403, "Forbidden resource"], [], 0]);
  });

  test.each([
    { name: "UnauthorizedException", httpStatus: 401, message: "no token" },
    { name: "ForbiddenException", httpStatus: 403, message: "no token" },
    { name: "Error", httpStatus: 500, message: "internal error" },
  ])("that throws $name refuses the call ($httpStatus)", async ({ name, httpStatus, message }) => {
    const exceptions: Record<string, new (text: string) => Error> = { ...require("@nestjs/common"), Error };
    const canActivate = (): never => {
      throw new (exceptions[name] ?? Error)("no token");
    };
    expect([await call(await startWith({ canActivate }), getReading), handled]).toEqual([[httpStatus, message], 0]);
  });

  test("can read the handler's and the class's metadata", async () => {
    const roles: unknown[] = [];
    const canActivate = (context: Context): boolean => {
      roles.push(roleOf(context.getHandler()), roleOf(context.getClass()));
      return true;
    };
    const provider = createProvider();
    nest.UseGuards({ canActivate })(provider);
    nest.SetMetadata("role", "of the class")(provider);
    decorateMethod(nest.SetMetadata("role", "of the method"), provider, "getReading");
    expect(await call(await start({ provider }), getReading)).toEqual([200]);
    expect(roles).toEqual(["of the method", "of the class"]);
  });

  test("receives its injected dependencies", async () => {
    class SensorGuard {
      readonly sensors: Sensors;
      constructor(sensors: Sensors) {
        this.sensors = sensors;
      }
      canActivate(): boolean {
        seen.push(String(this.sensors.degreesCelsius));
        return true;
      }
    }
    nest.Inject(Sensors)(SensorGuard, undefined, 0);
    expect([await call(await startWith(SensorGuard), getReading), seen]).toEqual([[200], ["21"]]);
  });

  test("is ignored if its factory returns undefined", async () => {
    const provide = require("@nestjs/core").APP_GUARD;
    const url = await start({ providers: [{ provide, useFactory: () => undefined }] });
    expect(await call(url, getReading)).toEqual([200]);
  });

  test.each([
    {
      scope: "REQUEST",
      error:
        "Nest creates providers of ConnectModule for each request: Palmhouse → ScopedGuard. Remove the scope REQUEST,",
    },
    { scope: "TRANSIENT", error: "singletons for RPCs: ScopedGuard of Palmhouse. Remove their scope" },
  ])("on the provider with the scope $scope prevents the start", async ({ scope, error }) => {
    class ScopedGuard extends RoleGuard {}
    nest.Injectable({ scope: require("@nestjs/common").Scope[scope] })(ScopedGuard);
    await expect(startWith(RoleGuard, ScopedGuard)).rejects.toThrow(error);
  });

  test("from APP_GUARD with the scope REQUEST prevents the start", async () => {
    const provide = require("@nestjs/core").APP_GUARD;
    const providers = [{ provide, useClass: RoleGuard, scope: require("@nestjs/common").Scope.REQUEST }];
    await expect(start({ providers })).rejects.toThrow("singletons for RPCs: RoleGuard (global). Remove their scope");
  });

  test("cannot be used if mount receives the HTTP adapter", async () => {
    const app = await version.create({});
    expect(() => app.get(ConnectGateway).mount(app.getHttpAdapter())).toThrow(
      "mount requires the application that NestFactory.create returns",
    );
  });
});

describe.each(nestVersions)("Nest, %s", (_name, version) => {
  test("a warning lists pipes, filters and interceptors that RPCs do not run", async () => {
    const warnings: string[] = [];
    const add = ({ message }: Error): unknown => message.startsWith("Nest runs no") && warnings.push(message);
    process.on("warning", add);
    onTestFinished(() => void process.off("warning", add));
    const { nest } = version;
    const provider = createProvider();
    nest.UsePipes(TrimPipe)(provider);
    decorateMethod(nest.UseInterceptors(LogInterceptor), provider, "getReading");
    nest.UseFilters(PageFilter)(provider);
    nest.Body(TrimPipe)(provider.prototype, "recordReadings", 0);
    const app = await version.create({}, provider);
    app.useGlobalPipes(new TrimPipe());
    app.useGlobalInterceptors(new LogInterceptor());
    app.useGlobalFilters(new PageFilter());
    const url = await listen(app);
    expect((await ask(`${url}/sensors/palm/reading`))[0]).toBe(200);
    const expected =
      "Nest runs no pipes, interceptors or exception filters for RPCs: TrimPipe of Palmhouse, TrimPipe of " +
      "Palmhouse.recordReadings, TrimPipe (global), LogInterceptor of Palmhouse.getReading, LogInterceptor (global), " +
      "PageFilter of Palmhouse, PageFilter (global)";
    await expect.poll(() => warnings).toEqual([expected]);
  });
});
