import type { IncomingMessage } from "node:http";
import { Code, ConnectError, createClient, createContextValues } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { LibraryService } from "../../../../testing/src/gen/library/v1/library_pb.ts";
import { ConnectGateway } from "../../../src/nestjs.ts";
import { pathOf } from "./frameworks.ts";
import { ask, Greenhouse, listen, nestVersions, origin, roleKey, Sensors } from "./nest-application.ts";

class DynamicSensors {
  readonly sensors = 1;
}

/** A provider without RPCs, which JavaScript allows. */
class Empty {
  readonly rpcs = 0;
}

describe.each(nestVersions)("Nest, %s", (_version, { create, nest, require }) => {
  test("a provider with dependencies serves calls after helmet and CORS", async () => {
    const app = await create();
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
      name: "a promise for a dynamic module",
      imported: Promise.resolve({ module: DynamicSensors, providers: [Sensors], exports: [Sensors] }),
    },
  ])("$name can export a provider's dependencies", async ({ imported }) => {
    const url = await listen(await create({ imports: [imported] }));
    expect((await ask(`${url}/sensors/palm/reading`))[1]).toEqual({ sensor: "palm", degreesCelsius: 21 });
  });

  test("`contextValues` receives the request, and `onFault` receives faults", async () => {
    const faults: unknown[] = [];
    const app = await create({
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

  test.each([
    { name: "BadRequestException", httpStatus: 400, code: "invalid_argument" },
    { name: "UnauthorizedException", httpStatus: 401, code: "unauthenticated" },
    { name: "ForbiddenException", httpStatus: 403, code: "permission_denied" },
    { name: "NotFoundException", httpStatus: 404, code: "not_found" },
    { name: "ConflictException", httpStatus: 409, code: "already_exists" },
    { name: "PreconditionFailedException", httpStatus: 400, code: "failed_precondition" },
    { name: "UnprocessableEntityException", httpStatus: 400, code: "invalid_argument" },
    { name: "NotImplementedException", httpStatus: 501, code: "unimplemented" },
    { name: "ServiceUnavailableException", httpStatus: 503, code: "unavailable" },
  ])("a handler's $name is $code for clients, and no fault", async ({ name, httpStatus, code }) => {
    class Failing extends Greenhouse {
      override getReading(): never {
        throw new (require("@nestjs/common")[name])("no sensor");
      }
      override async *watchReadings(): AsyncGenerator<object> {
        yield {};
        throw new (require("@nestjs/common")[name])("no sensor");
      }
    }
    const faults: unknown[] = [];
    const url = await listen(await create({ onFault: (error) => void faults.push(error) }, Failing));
    const [actual, body] = await ask(url + pathOf("GetReading"), "{}");
    expect([actual, body]).toEqual([httpStatus, { code, message: "no sensor" }]);
    expect((await ask(`${url}/sensors/palm/reading`))[0]).toBe(httpStatus);
    const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", nodeOptions: { agent: false } });
    const stream = createClient(GreenhouseService, transport).watchReadings({})[Symbol.asyncIterator]();
    await stream.next();
    await expect(stream.next()).rejects.toThrow(`[${code}] no sensor`);
    expect(faults).toEqual([]);
  });

  test("`toError` receives a handler's HttpException", async () => {
    class Failing extends Greenhouse {
      override getReading(): never {
        throw new (require("@nestjs/common").NotFoundException)("no sensor");
      }
    }
    const url = await listen(
      await create({ toError: (thrown) => new ConnectError(String(thrown), Code.DataLoss) }, Failing),
    );
    const error = { code: "data_loss", message: "NotFoundException: no sensor" };
    expect((await ask(url + pathOf("GetReading"), "{}"))[1]).toEqual(error);
  });

  test("a provider without a method for an RPC is refused at start", () =>
    expect(create({}, Empty)).rejects.toThrow(`Empty has no method "getReading" of ${GreenhouseService.typeName}`));

  test.each<{ name: string; isIndirect: boolean; chain: string }>([
    { name: "a request-scoped provider", isIndirect: false, chain: "ScopedGreenhouse" },
    { name: "a dependency that is request-scoped", isIndirect: true, chain: "ScopedGreenhouse → Tenants → Tenant" },
  ])("mount names $name, and no singleton", async ({ isIndirect, chain }) => {
    class Tenant {
      readonly name = "north";
    }
    class Tenants {
      readonly current: Tenant;
      constructor(current: Tenant) {
        this.current = current;
      }
    }
    class ScopedGreenhouse extends Greenhouse {}
    class Library {
      readonly books = 0;
    }
    for (const { localName } of LibraryService.methods) Reflect.set(Library.prototype, localName, () => ({}));
    class TenantModule {
      readonly tenants = 1;
    }
    const scope: object = { scope: require("@nestjs/common").Scope.REQUEST };
    nest.Injectable(isIndirect ? scope : {})(Tenant);
    nest.Inject(Tenant)(Tenants, undefined, 0);
    nest.Injectable(isIndirect ? {} : scope)(ScopedGreenhouse);
    nest.Inject(Tenants)(ScopedGreenhouse, undefined, 0);
    nest.Module({ providers: [Tenant, Tenants], exports: [Tenants] })(TenantModule);
    const services = [
      { service: LibraryService, provider: Library },
      { service: GreenhouseService, provider: ScopedGreenhouse },
    ];
    const app = await create({ services, imports: [TenantModule] });
    expect(() => app.get(ConnectGateway).mount(app)).toThrow(
      `Nest creates providers of ConnectModule for each request: ${chain}. Remove the scope REQUEST, and read`,
    );
  });

  test("`app.init` rejects if the gateway is not mounted", async () => {
    const app = await create();
    await expect(app.init()).rejects.toThrow("call app.get(ConnectGateway).mount(app) before app.init");
  });

  test("`close` aborts calls after its timeout, so that the server closes", async () => {
    const app = await create({ closeTimeoutMs: 50 });
    const baseUrl = await listen(app);
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions: { agent: false } });
    const stream = createClient(GreenhouseService, transport).watchReadings({})[Symbol.asyncIterator]();
    expect(await stream.next()).toMatchObject({ value: { sensor: "first" } });
    const closed = app.close();
    await expect(stream.next()).rejects.toThrow("[unavailable] the server is shutting down");
    await closed;
  });
});
