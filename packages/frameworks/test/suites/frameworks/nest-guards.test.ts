import { describe, expect, onTestFinished, test } from "vitest";
import { ConnectGateway } from "../../../src/nestjs.ts";
import {
  type Application,
  ask,
  Greenhouse,
  listen,
  nestVersions,
  type NestVersion,
  SensorModule,
} from "./nest-application.ts";

/** A guard that refuses all calls. Nest would respond to a controller's caller with 403. */
class DenyGuard {
  canActivate(): boolean {
    return false;
  }
}

/** A class that inherits from a guard is another guard. */
class StrictGuard extends DenyGuard {}

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

/** The part of Nest's `MiddlewareConsumer` that tests use. */
interface Consumer {
  apply(middleware: (request: { originalUrl?: string }, response: object, next: () => void) => void): {
    forRoutes(path: string): void;
  };
}

/** What an application declares, in addition to the gateway. */
interface Declared {
  readonly provider?: typeof Greenhouse;
  readonly providers?: readonly object[];
  configure?(this: void, app: Application): void;
}

/** Returns a provider whose methods are not shared, so that decorators change no provider of another test. */
function createProvider(): typeof Greenhouse {
  return class Palmhouse extends Greenhouse {
    override getReading(request: { sensor: string }): object {
      return super.getReading(request);
    }
    override async recordReadings(): Promise<object> {
      return {};
    }
    /** Not an RPC. */
    prune(): void {}
  };
}

function decorateMethod(
  decorate: ReturnType<NestVersion["nest"]["UseGuards"]>,
  type: typeof Greenhouse,
  name: string,
): void {
  decorate(type.prototype, name, { value: Reflect.get(type.prototype, name) });
}

interface Case {
  readonly name: string;
  readonly label: string;
  declare(this: void, version: NestVersion): Declared;
}

const guardCases: readonly Case[] = [
  {
    name: "of the provider",
    label: "DenyGuard of Palmhouse",
    declare({ nest }) {
      const provider = createProvider();
      nest.UseGuards(DenyGuard)(provider);
      return { provider };
    },
  },
  {
    name: "of the provider's base class",
    label: "DenyGuard of Cactushouse",
    declare({ nest }) {
      const base = createProvider();
      nest.UseGuards(DenyGuard)(base);
      return { provider: class Cactushouse extends base {} };
    },
  },
  {
    name: "of a method",
    label: "DenyGuard of Palmhouse.recordReadings",
    declare({ nest }) {
      const provider = createProvider();
      decorateMethod(nest.UseGuards(DenyGuard), provider, "recordReadings");
      return { provider };
    },
  },
  {
    name: "that is an object",
    label: "DenyGuard of Palmhouse.getReading",
    declare({ nest }) {
      const provider = createProvider();
      decorateMethod(nest.UseGuards(new DenyGuard()), provider, "getReading");
      return { provider };
    },
  },
  {
    name: "of useGlobalGuards",
    label: "DenyGuard (global)",
    declare: () => ({ configure: (app) => app.useGlobalGuards(new DenyGuard()) }),
  },
  {
    name: "of APP_GUARD by class",
    label: "DenyGuard (global)",
    declare: ({ require }) => ({ providers: [{ provide: require("@nestjs/core").APP_GUARD, useClass: DenyGuard }] }),
  },
  {
    name: "of APP_GUARD by factory",
    label: "DenyGuard (global)",
    declare: ({ require }) => ({
      providers: [{ provide: require("@nestjs/core").APP_GUARD, useFactory: () => new DenyGuard() }],
    }),
  },
  {
    name: "of APP_GUARD for each request",
    label: "DenyGuard (global)",
    declare: ({ require }) => ({
      providers: [
        {
          provide: require("@nestjs/core").APP_GUARD,
          useClass: DenyGuard,
          scope: require("@nestjs/common").Scope.REQUEST,
        },
      ],
    }),
  },
];

describe.each(nestVersions)("a guard in Nest, %s", (_name, version) => {
  async function create(
    { provider, providers, configure }: Declared,
    ignoredGuards?: readonly (typeof DenyGuard)[],
  ): Promise<Application> {
    const options = ignoredGuards === undefined ? {} : { ignoredGuards };
    const app = await version.create(options, provider, providers);
    configure?.(app);
    return app;
  }

  async function problemOf(declared: Declared, ignoredGuards?: readonly (typeof DenyGuard)[]): Promise<string> {
    const app = await create(declared, ignoredGuards);
    return await listen(app).then(
      () => "started",
      (error: Error) => error.message,
    );
  }

  test.each(guardCases)("$name refuses the start, unless it is ignored", async ({ label, declare }) => {
    const declared = declare(version);
    expect(await problemOf(declared)).toBe(
      `Nest runs no guards for RPCs: ${label}. Check callers with the option admit or an interceptor of Connect; then ` +
        "accept guards that are not needed with the option ignoredGuards",
    );
    // A subclass or base class of an ignored guard is refused.
    expect(await problemOf(declared, [StrictGuard])).toContain(`: ${label}.`);
    const url = await listen(await create(declared, [StrictGuard, DenyGuard]));
    expect((await ask(`${url}/sensors/palm/reading`))[0]).toBe(200);
  });

  test("next to an ignored one refuses the start, with the names of all others", async () => {
    const provider = createProvider();
    version.nest.UseGuards(DenyGuard, StrictGuard)(provider);
    const declared: Declared = {
      provider,
      configure: (app) => app.useGlobalGuards(new DenyGuard(), new StrictGuard()),
    };
    expect(await problemOf(declared)).toContain(
      ": DenyGuard of Palmhouse, StrictGuard of Palmhouse, DenyGuard (global), StrictGuard (global).",
    );
    expect(await problemOf(declared, [DenyGuard])).toContain(": StrictGuard of Palmhouse, StrictGuard (global).");
  });

  test("of another method of the provider does not refuse the start", async () => {
    const provider = createProvider();
    decorateMethod(version.nest.UseGuards(DenyGuard), provider, "prune");
    expect(await problemOf({ provider })).toBe("started");
  });

  test("of a factory that returns nothing does not refuse the start", async () => {
    const provide = version.require("@nestjs/core").APP_GUARD;
    expect(await problemOf({ providers: [{ provide, useFactory: () => undefined }] })).toBe("started");
  });

  test("cannot be found by a gateway that is mounted in an adapter, which is refused", async () => {
    const app = await create({});
    expect(() => app.get(ConnectGateway).mount(app.getHttpAdapter())).toThrow(
      "mount requires the application that NestFactory.create returns",
    );
  });
});

describe.each(nestVersions)("Nest, %s", (_name, version) => {
  test("middleware that a module configures runs only for requests that are not RPCs", async () => {
    const urls: unknown[] = [];
    class LogModule {
      configure(consumer: Consumer): void {
        consumer
          .apply(({ originalUrl }, _response, next) => {
            urls.push(originalUrl);
            next();
          })
          .forRoutes("*path");
      }
    }
    version.nest.Module({})(LogModule);
    const url = await listen(await version.create({ imports: [SensorModule, LogModule] }));
    expect((await ask(`${url}/sensors/palm/reading`))[0]).toBe(200);
    expect((await ask(`${url}/echo`, "{}"))[0]).toBe(201);
    expect(urls).toEqual(["/echo"]);
  });

  test("pipes, filters and interceptors, which do not run for RPCs, cause one warning", async () => {
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
