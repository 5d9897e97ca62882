import { setTimeout } from "node:timers/promises";
import type { Metadata } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import { folders, requireFrom } from "../../../../frameworks/test/suites/frameworks/frameworks.ts";
import { freePort } from "../../../../testing/src/process/free-port.ts";
import { createGatewayStrategy, type GatewayStrategyOptions, type GrpcServer } from "../../../src/nestjs.ts";
import { includeDirs } from "../../garden.ts";
import type { Message } from "../../grpc-js-client.ts";

/** What tests use from Nest. Its types are missing in a fresh clone. */
export interface Application {
  connectMicroservice(options: object, hybrid?: object): unknown;
  getHttpServer(): object;
  startAllMicroservices(): Promise<unknown>;
  use(middleware: unknown): void;
  setGlobalPrefix(prefix: string, options?: object): void;
  useGlobalGuards(...guards: object[]): void;
  init(): Promise<unknown>;
  listen(port: number, host: string): Promise<unknown>;
  getUrl(): Promise<string>;
  close(): Promise<void>;
}

type Decorator = (target: object, key?: string, detail?: unknown) => void;
type Decorate = (...parts: unknown[]) => Decorator;
type Observable = { pipe(...operators: unknown[]): Observable };

export interface NestVersion {
  create(this: void, options?: GatewayStrategyOptions, parts?: Partial<ApplicationParts>): Promise<NestGarden>;
  readonly require: NodeJS.Require;
  startOwn(this: void): Promise<number>;
}

/** What an application has in addition to the garden. */
export interface ApplicationParts {
  readonly fastify: object;
  /** The options of the microservice, or `null` if the test connects it. */
  readonly hybrid: object | null;
  readonly providers: readonly object[];
  readonly configure: (consumer: object) => unknown;
  readonly prepare: (app: Application) => unknown;
}

export interface NestGarden {
  readonly app: Application;
  readonly strategy: ReturnType<typeof createGatewayStrategy>;
  /** The names of the enhancers and handlers, in the order in which they have run. */
  readonly order: readonly string[];
}

class NoTreeError extends Error {}

const loader = { includeDirs: [...includeDirs], longs: String };
const grpcOptions = { package: "garden.v1", protoPath: "garden/v1/garden.proto", loader };

function nestVersion(folder: string, platform: "Express" | "Fastify"): NestVersion {
  const require = requireFrom(folder);
  const nest: Record<
    "Catch" | "Controller" | "Get" | "Module" | "UseFilters" | "UseGuards" | "UseInterceptors" | "UsePipes",
    Decorate
  > = require("@nestjs/common");
  const microservices: Record<"GrpcMethod" | "GrpcStreamMethod", Decorate> & {
    readonly ServerGrpc: new (options: object) => GrpcServer;
    readonly RpcException: new (error: string) => Error;
    readonly Transport: { readonly GRPC: number };
  } = require("@nestjs/microservices");
  const { NestFactory } = require("@nestjs/core");
  const { from, interval, map, throwError, toArray } = require("rxjs");

  function createModule(order: string[], { providers = [], configure }: Partial<ApplicationParts>): object {
    class KeyGuard {
      async canActivate(context: { switchToRpc(): { getContext(): Metadata } }): Promise<boolean> {
        order.push("guard");
        const metadata = context.switchToRpc().getContext();
        if (metadata.get("x-slow").length > 0) await setTimeout(50);
        if (metadata.get("x-never").length > 0) await new Promise(() => {});
        return metadata.get("x-key")[0] === "open";
      }
    }
    class BedPipe {
      transform(value: Message): unknown {
        // Nest also passes the metadata and the call.
        if (!("bedName" in value)) return value;
        order.push("pipe");
        return { ...value, bedName: `${String(value["bedName"])}/piped` };
      }
    }
    class OrderInterceptor {
      intercept(_context: unknown, next: { handle(): Observable }): unknown {
        order.push("interceptor");
        return next.handle();
      }
    }
    class NoTreeFilter {
      catch(error: Error): unknown {
        order.push("filter");
        return throwError(() => ({ code: 5, message: error.message }));
      }
    }
    class GardenController {
      getTree({ treeId, bedName }: Message): Message {
        order.push("handler");
        if (treeId === "404") throw new NoTreeError("no such tree");
        if (treeId === "500") throw new Error("secret");
        if (treeId === "400") throw new microservices.RpcException("not a tree");
        return { treeId, speciesName: bedName };
      }
      listTrees({ pageSize }: Message): Observable {
        if (pageSize === 0) throw new NoTreeError("no trees");
        if (Number(pageSize) < 0) return interval(1).pipe(map((at: number) => ({ treeId: String(at) })));
        return from(Array.from({ length: Number(pageSize) }, (_, at) => ({ treeId: String(at + 1) })));
      }
      addTrees(trees: Observable): Observable {
        return trees.pipe(
          toArray(),
          map((all: unknown[]) => ({ treeCount: all.length })),
        );
      }
      tradeTrees(trees: Observable): Observable {
        return trees.pipe(map(({ treeId }: Message) => ({ treeId: String(Number(treeId) + 10) })));
      }
    }
    class PageController {
      page(): string {
        return "a page";
      }
    }
    class AppModule {
      configure(consumer: object): void {
        configure?.(consumer);
      }
    }
    nest.Controller()(PageController);
    nest.Get("page")(PageController.prototype, "page", { value: Reflect.get(PageController.prototype, "page") });
    const { prototype } = GardenController;
    const decorate = (decorator: Decorator, name: keyof GardenController): void => {
      const descriptor = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
      decorator(prototype, name, descriptor);
      // Nest's stream decorators replace the method.
      Object.defineProperty(prototype, name, descriptor);
    };
    nest.Catch(NoTreeError)(NoTreeFilter);
    nest.Controller()(GardenController);
    for (const name of ["getTree", "listTrees"] as const) {
      decorate(microservices.GrpcMethod("Garden", rpcOf(name)), name);
      decorate(nest.UsePipes(new BedPipe()), name);
    }
    for (const name of ["addTrees", "tradeTrees"] as const)
      decorate(microservices.GrpcStreamMethod("Garden", rpcOf(name)), name);
    nest.UseGuards(KeyGuard)(GardenController);
    nest.UseInterceptors(OrderInterceptor)(GardenController);
    nest.UseFilters(NoTreeFilter)(GardenController);
    nest.Module({ controllers: [GardenController, PageController], providers })(AppModule);
    return AppModule;
  }

  async function createApplication(order: string[], parts: Partial<ApplicationParts> = {}): Promise<Application> {
    const adapters = require(`@nestjs/platform-${platform.toLowerCase()}`);
    const adapter = platform === "Fastify" ? new adapters.FastifyAdapter(parts.fastify) : new adapters.ExpressAdapter();
    const app: Application = await NestFactory.create(createModule(order, parts), adapter, { logger: false });
    onTestFinished(() => app.close());
    return app;
  }

  return {
    require,
    async create(options = {}, parts = {}) {
      const order: string[] = [];
      const app = await createApplication(order, parts);
      parts.prepare?.(app);
      const strategy = createGatewayStrategy(microservices.ServerGrpc, grpcOptions, options);
      if (parts.hybrid !== null) app.connectMicroservice({ strategy }, parts.hybrid ?? { inheritAppConfig: true });
      return { app, strategy, order };
    },
    async startOwn() {
      const app = await createApplication([]);
      const port = await freePort();
      const options = { ...grpcOptions, url: `127.0.0.1:${port}` };
      app.connectMicroservice({ transport: microservices.Transport.GRPC, options });
      await app.startAllMicroservices();
      return port;
    },
  };
}

const rpcOf = (name: string): string => name.replace(/^./, (letter) => letter.toUpperCase());

/** Each supported major Nest version on each platform, by name. */
export const nestVersions: readonly (readonly [string, NestVersion])[] = Object.entries(folders).flatMap(
  ([version, folder]) =>
    (["Express", "Fastify"] as const).map(
      (platform) => [`${version} major version on ${platform}`, nestVersion(folder, platform)] as const,
    ),
);
