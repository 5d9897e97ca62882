import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createClient, createContextKey, createContextValues } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ConnectGateway, ConnectModule, type ConnectModuleOptions, type ConnectProvider } from "../../../src/nestjs.ts";
import { folders, pathOf, requireFrom } from "./frameworks.ts";

interface Application {
  use(middleware: unknown): void;
  enableCors(options: object): void;
  get<Provider>(token: new (...dependencies: never[]) => Provider): Provider;
  init(): Promise<void>;
  listen(port: number, host: string): Promise<unknown>;
  getUrl(): Promise<string>;
  close(): Promise<void>;
}

type Decorator = (target: object, key?: string, detail?: unknown) => void;

/** The part of Nest used here: its types are installed with it, and missing in a fresh clone. */
interface Nest {
  Module(metadata: object): Decorator;
  Controller(): Decorator;
  Post(path: string): Decorator;
  Body(): Decorator;
  Inject(token: object): Decorator;
}

interface Testing {
  Test: {
    createTestingModule(metadata: object): { compile(): Promise<{ createNestApplication(): Application }> };
  };
}

const origin = "https://shop.example";
const roleKey = createContextKey("none");

/** A dependency of the provider, in a module of the application. */
class Sensors {
  readonly degreesCelsius = 21;
}

/** A provider with all RPCs, which must be called as methods of it. */
class Greenhouse {
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

class PageController {
  echo(body: unknown): unknown {
    return body;
  }
}

class SensorModule {
  readonly sensors = 1;
}

class DynamicSensors {
  readonly sensors = 1;
}

/** A provider without the RPCs, as one in JavaScript may be. */
class Empty {
  readonly rpcs = 0;
}

/** Sends a JSON request on a new connection, so that `close` does not wait for idle ones. */
async function ask(url: string, body?: string): Promise<[number, unknown, Headers]> {
  const headers = { "content-type": "application/json", connection: "close", origin };
  const init = body === undefined ? { headers } : { method: "POST", headers, body };
  const response = await fetch(url, init);
  return [response.status, await response.json(), response.headers];
}

async function listen(app: Application): Promise<string> {
  app.get(ConnectGateway).mount(app);
  await app.listen(0, "127.0.0.1");
  return await app.getUrl();
}

describe.each(Object.entries(folders))("Nest, %s major version", (_version, folder) => {
  const require = requireFrom(folder);
  const nest: Nest = require("@nestjs/common");
  const { Test }: Testing = require("@nestjs/testing");

  nest.Inject(Sensors)(Greenhouse, undefined, 0);
  nest.Module({ providers: [Sensors], exports: [Sensors] })(SensorModule);
  nest.Controller()(PageController);
  nest.Post("echo")(PageController.prototype, "echo", { value: Reflect.get(PageController.prototype, "echo") });
  nest.Body()(PageController.prototype, "echo", 0);

  async function createApplication(
    options: Partial<ConnectModuleOptions> = {},
    provider: ConnectProvider["provider"] = Greenhouse,
  ): Promise<Application> {
    const services = [{ service: GreenhouseService, provider }];
    const connect = ConnectModule.forRoot({ services, imports: [SensorModule], ...options });
    const compiled = await Test.createTestingModule({ imports: [connect], controllers: [PageController] }).compile();
    const app = compiled.createNestApplication();
    onTestFinished(() => app.close());
    return app;
  }

  test("a provider with dependencies serves REST and Connect behind helmet and CORS, next to controllers", async () => {
    const app = await createApplication();
    app.use(require("helmet")());
    app.enableCors({ origin });
    const url = await listen(app);
    const [httpStatus, body, header] = await ask(`${url}/sensors/palm/reading`);
    expect([httpStatus, body]).toEqual([200, { sensor: "palm", degreesCelsius: 21 }]);
    expect([header.get("x-frame-options"), header.get("access-control-allow-origin")]).toEqual(["SAMEORIGIN", origin]);
    const [, called] = await ask(url + pathOf("GetReading"), '{"sensor":"door"}');
    expect(called).toEqual({ sensor: "door", degreesCelsius: 21 });
    expect((await ask(`${url}/echo`, '{"to":"you"}')).slice(0, 2)).toEqual([201, { to: "you" }]);
    expect((await ask(`${url}/none`))[1]).toMatchObject({ error: "Not Found" });
    // Before Nest's body parser, which would refuse this in another form and round the number.
    expect((await ask(url + pathOf("GetReading"), "{"))[1]).toMatchObject({ code: "invalid_argument" });
    expect((await ask(`${url}/beds/9007199254740993:water`, "{}"))[1]).toMatchObject({ bed: "9007199254740993" });
  });

  test.each([
    { name: "a dynamic module", imported: { module: DynamicSensors, providers: [Sensors], exports: [Sensors] } },
    {
      name: "a promise of a dynamic module",
      imported: Promise.resolve({ module: DynamicSensors, providers: [Sensors], exports: [Sensors] }),
    },
  ])("$name exports the dependencies of a provider", async ({ imported }) => {
    const url = await listen(await createApplication({ imports: [imported] }));
    expect((await ask(`${url}/sensors/palm/reading`))[1]).toEqual({ sensor: "palm", degreesCelsius: 21 });
  });

  test("`contextValues` gets Express's request, and faults go to `onFault`", async () => {
    const faults: unknown[] = [];
    const app = await createApplication({
      contextValues: (request: IncomingMessage & { role?: string }) =>
        createContextValues().set(roleKey, request.role ?? ""),
      onFault: (error) => void faults.push(error),
    });
    app.use((request: object, _response: unknown, next: () => void) => {
      Object.assign(request, { role: "gardener" });
      next();
    });
    const url = await listen(app);
    expect((await ask(`${url}/beds/7:water`, "{}"))[1]).toMatchObject({ note: "gardener" });
    const [httpStatus, body] = await ask(`${url}/sensors/broken/reading`);
    expect([httpStatus, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining("disk")]);
    expect(faults).toEqual([expect.objectContaining({ message: "disk on fire" })]);
  });

  test("a provider without a method for an RPC is refused when the application is created", async () => {
    await expect(createApplication({}, Empty)).rejects.toThrow(
      `Empty has no method "getReading" of ${GreenhouseService.typeName}`,
    );
  });

  test("`init` rejects if the gateway is not mounted", async () => {
    const app = await createApplication();
    await expect(app.init()).rejects.toThrow("call app.get(ConnectGateway).mount(app) before app.init");
  });

  test("`close` aborts calls that are still in flight after the timeout, so that the server closes", async () => {
    const app = await createApplication({ closeTimeoutMs: 50 });
    const baseUrl = await listen(app);
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions: { agent: false } });
    const stream = createClient(GreenhouseService, transport).watchReadings({})[Symbol.asyncIterator]();
    expect(await stream.next()).toMatchObject({ value: { sensor: "first" } });
    const closed = app.close();
    await expect(stream.next()).rejects.toThrow("[unavailable] the server is shutting down");
    await closed;
  });
});
