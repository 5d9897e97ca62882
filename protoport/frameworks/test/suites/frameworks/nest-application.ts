import { once } from "node:events";
import { type ContextKey, createContextKey } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ConnectGateway, ConnectModule, type ConnectModuleOptions, type ConnectProvider } from "../../../src/nestjs.ts";
import { folders, requireFrom } from "./frameworks.ts";
import type { Application as Express } from "./usual-middleware.ts";
import type { Application as Fastify } from "./usual-plugins.ts";

/** What tests use from a Nest application. Its types are missing in a fresh clone. */
export interface Application {
  use(middleware: unknown): void;
  enableCors(options: object): void;
  get<Provider>(token: new (...dependencies: never[]) => Provider): Provider;
  useGlobalGuards(...guards: object[]): void;
  useGlobalPipes(...pipes: object[]): void;
  useGlobalInterceptors(...interceptors: object[]): void;
  useGlobalFilters(...filters: object[]): void;
  getHttpAdapter(): { use(middleware: unknown): unknown; getInstance(): Express & Fastify };
  setGlobalPrefix(prefix: string, options?: object): void;
  /** Available only on Fastify. */
  register?(plugin: unknown, options: object): Promise<unknown>;
  init(): Promise<void>;
  listen(port: number, host: string): Promise<unknown>;
  getUrl(): Promise<string>;
  close(): Promise<void>;
}

type Decorator = (target: object, key?: string, detail?: unknown) => void;

interface Decorators {
  Module(metadata: object): Decorator;
  Controller(): Decorator;
  Post(path: string): Decorator;
  Body(...pipes: object[]): Decorator;
  Inject(token: object): Decorator;
  Injectable(options: object): Decorator;
  SetMetadata(key: string, value: unknown): Decorator;
  UseGuards(...guards: object[]): Decorator;
  UsePipes(...pipes: object[]): Decorator;
  UseInterceptors(...interceptors: object[]): Decorator;
  UseFilters(...filters: object[]): Decorator;
}

interface Testing {
  Test: {
    createTestingModule(metadata: object): {
      compile(): Promise<{ createNestApplication(adapter: object): Application }>;
    };
  };
}

export interface NestVersion {
  readonly platform: Platform;
  readonly require: NodeJS.Require;
  readonly nest: Decorators;
  /** Creates an application with a page controller, and a provider that implements the greenhouse. */
  create(
    this: void,
    options?: Partial<ConnectModuleOptions>,
    provider?: ConnectProvider["provider"],
    providers?: readonly object[],
    ofFastify?: object,
  ): Promise<Application>;
  /** Creates an application with the controller and this provider, without a gateway. */
  createWithoutGateway(this: void, provider: ConnectProvider["provider"]): Promise<Application>;
}

type Platform = "Express" | "Fastify";
const platforms: readonly Platform[] = ["Express", "Fastify"];

export class Sensors {
  readonly degreesCelsius = 21;
}

export const roleKey: ContextKey<string> = createContextKey("none");

/** A provider with all RPCs, which must be called as its methods. */
export class Greenhouse {
  readonly sensors: Sensors;
  constructor(sensors: Sensors) {
    this.sensors = sensors;
  }
  getReading({ sensor }: { sensor: string }): object {
    if (sensor === "broken") throw new Error("disk on fire");
    return { sensor, degreesCelsius: this.sensors.degreesCelsius };
  }
  waterBed({ bed }: { bed: bigint }, { values }: { values: { get(key: typeof roleKey): string } }): object {
    return { bed, note: values.get(roleKey) };
  }
  async *watchReadings(_request: object, { signal }: { signal: AbortSignal }): AsyncGenerator<object> {
    yield { sensor: "first" };
    await once(signal, "abort");
    throw signal.reason;
  }
  async recordReadings(): Promise<object> {
    return {};
  }
  async *controlClimate(): AsyncGenerator<object> {
    yield {};
  }
}

export class PageController {
  echo(body: unknown): unknown {
    return body;
  }
}

export class SensorModule {
  readonly sensors = 1;
}

/** Sends a JSON request on a new connection, so that `close` does not wait for idle ones. */
export async function ask(url: string, body?: string): Promise<[number, unknown, Headers]> {
  const headers = { "content-type": "application/json", connection: "close", origin };
  const response = await fetch(url, body === undefined ? { headers } : { method: "POST", headers, body });
  return [response.status, await response.json(), response.headers];
}

export const origin = "https://shop.example";

export async function listen(app: Application): Promise<string> {
  app.get(ConnectGateway).mount(app);
  await app.listen(0, "127.0.0.1");
  return await app.getUrl();
}

function nestVersion(folder: string, platform: Platform): NestVersion {
  const require = requireFrom(folder);
  const nest: Decorators = require("@nestjs/common");
  const { Test }: Testing = require("@nestjs/testing");
  nest.Inject(Sensors)(Greenhouse, undefined, 0);
  nest.Module({ providers: [Sensors], exports: [Sensors] })(SensorModule);
  nest.Controller()(PageController);
  nest.Post("echo")(PageController.prototype, "echo", { value: Reflect.get(PageController.prototype, "echo") });
  nest.Body()(PageController.prototype, "echo", 0);
  const createAdapter = (ofFastify?: object): object => {
    const adapters = require(`@nestjs/platform-${platform.toLowerCase()}`);
    return platform === "Fastify" ? new adapters.FastifyAdapter(ofFastify) : new adapters.ExpressAdapter();
  };
  const compile = async (imported: object, providers: readonly object[], ofFastify?: object): Promise<Application> => {
    const parts = { imports: [imported], controllers: [PageController], providers };
    const app = (await Test.createTestingModule(parts).compile()).createNestApplication(createAdapter(ofFastify));
    onTestFinished(() => app.close());
    return app;
  };
  return {
    platform,
    require,
    nest,
    create(options = {}, provider = Greenhouse, providers = [], ofFastify = {}) {
      const services = [{ service: GreenhouseService, provider }];
      return compile(ConnectModule.forRoot({ services, imports: [SensorModule], ...options }), providers, ofFastify);
    },
    createWithoutGateway: (provider) => compile(SensorModule, [provider]),
  };
}

/** Each supported major Nest version on each platform, by name. */
export const nestVersions: readonly (readonly [string, NestVersion])[] = Object.entries(folders).flatMap(
  ([version, folder]) =>
    platforms.map((platform) => [`${version} major version on ${platform}`, nestVersion(folder, platform)] as const),
);
