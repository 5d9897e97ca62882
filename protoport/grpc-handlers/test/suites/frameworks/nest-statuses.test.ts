import { status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { folders, requireFrom } from "../../../../frameworks/test/suites/frameworks/frameworks.ts";
import { freePort } from "@protoport/testing/process";
import { createGatewayStrategy } from "../../../src/nestjs.ts";
import { includeDirs } from "../../garden.ts";
import { callGarden, type ClientCall } from "../../grpc-js-client.ts";

// The statuses of exceptions: each decorator of Nest, each part that throws, and each kind of exception.

type Part = "guard" | "interceptor" | "method" | "promise" | "observable" | "call" | "nobody";
type Decorate = (...parts: unknown[]) => (target: object, key?: string, detail?: object) => void;
const grpcOptions = { package: "garden.v1", protoPath: "garden/v1/garden.proto", loader: { includeDirs } };

const rpcs = {
  "@GrpcMethod of a unary call": ["GrpcMethod", "GetTree"],
  "@GrpcMethod of a server stream": ["GrpcMethod", "ListTrees"],
  "@GrpcStreamMethod of a client stream": ["GrpcStreamMethod", "AddTrees"],
  "@GrpcStreamMethod of a bidirectional stream": ["GrpcStreamMethod", "TradeTrees"],
  "@GrpcStreamCall of a client stream": ["GrpcStreamCall", "AddTrees"],
  "@GrpcStreamCall of a bidirectional stream": ["GrpcStreamCall", "TradeTrees"],
} as const satisfies Record<string, readonly [string, ClientCall["method"]]>;

type Garden = { readonly port: number; fail: { part: Part; create: () => unknown } };
type Call = { emit(event: string, error: unknown): void; end(): void; on(event: string, listener: () => void): void };

async function start(
  require: NodeJS.Require,
  [decorator, rpc]: readonly [string, string],
  passesOn = false,
): Promise<Garden> {
  const nest: Record<string, Decorate> = require("@nestjs/common");
  const microservices = require("@nestjs/microservices");
  const { from, throwError } = require("rxjs");
  const garden: Garden = { port: await freePort(), fail: { part: "nobody", create: () => undefined } };
  const failIn = (part: Part): void => {
    if (garden.fail.part === part) throw garden.fail.create();
  };
  class Guard {
    canActivate(): boolean {
      failIn("guard");
      return garden.fail.part !== "guard";
    }
  }
  class Interceptor {
    intercept(_context: object, next: { handle(): object }): object {
      failIn("interceptor");
      return next.handle();
    }
  }
  class PassOn {
    catch(error: unknown): object {
      return throwError(() => error);
    }
  }
  class GardenController {
    run(call: Call, callback?: unknown): unknown {
      const { part, create } = garden.fail;
      failIn("method");
      if (part === "promise") return Promise.reject(create());
      if (part === "observable") return throwError(create);
      if (part === "call" && typeof callback === "function") return callback(create());
      if (part === "call") return call.emit("error", create());
      if (decorator !== "GrpcStreamCall") return from([{}]);
      if (typeof callback === "function") return callback(null, {});
      return call.end();
    }
  }
  class AppModule {
    readonly name = "garden";
  }
  const { prototype } = GardenController;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, "run") ?? {};
  microservices[decorator]("Garden", rpc)(prototype, "run", descriptor);
  Object.defineProperty(prototype, "run", descriptor);
  nest["UseGuards"]?.(Guard)(GardenController);
  nest["UseInterceptors"]?.(Interceptor)(GardenController);
  nest["Catch"]?.(Reflect.get(nest, "HttpException"))(PassOn);
  if (passesOn) nest["UseFilters"]?.(PassOn)(GardenController);
  nest["Controller"]?.()(GardenController);
  nest["Module"]?.({ controllers: [GardenController] })(AppModule);
  const listen = { host: "127.0.0.1", port: garden.port };
  const strategy = createGatewayStrategy(microservices.ServerGrpc, grpcOptions, { listen, gateway: { onFault() {} } });
  const app = await require("@nestjs/core").NestFactory.createMicroservice(AppModule, { strategy, logger: false });
  onTestFinished(() => app.close());
  await app.listen();
  return garden;
}

describe.each(Object.entries(folders))("in the %s Nest", (_version, folder) => {
  const require = requireFrom(folder);
  const { RpcException } = require("@nestjs/microservices");
  const http: Record<string, new (text: string) => Error> = require("@nestjs/common");

  const exceptions: readonly [string, () => unknown, number, string][] = [
    ["a code", () => new RpcException({ code: status.NOT_FOUND, message: "no tree" }), status.NOT_FOUND, "no tree"],
    ["a string", () => new RpcException("no tree"), status.UNKNOWN, "no tree"],
    ["another status", () => new RpcException({ status: 404, message: "no tree" }), status.UNKNOWN, "no tree"],
    ["an unknown code", () => new RpcException({ code: 404, message: "no tree" }), status.UNKNOWN, "no tree"],
  ];
  const httpExceptions: readonly [string, number][] = [
    ["BadRequestException", status.INVALID_ARGUMENT],
    ["UnauthorizedException", status.UNAUTHENTICATED],
    ["ForbiddenException", status.PERMISSION_DENIED],
    ["NotFoundException", status.NOT_FOUND],
    ["ConflictException", status.ALREADY_EXISTS],
    ["PreconditionFailedException", status.FAILED_PRECONDITION],
    ["UnprocessableEntityException", status.INVALID_ARGUMENT],
    ["NotImplementedException", status.UNIMPLEMENTED],
    ["ServiceUnavailableException", status.UNAVAILABLE],
  ];

  describe.each(Object.entries(rpcs))("%s", (name, rpc) => {
    const isCall = name.startsWith("@GrpcStreamCall");
    const parts: readonly Part[] = ["guard", "interceptor", "method", "promise", isCall ? "call" : "observable"];
    const [, method] = rpc;

    test("sends the status of an RpcException from each part", async () => {
      const garden = await start(require, rpc);
      for (const part of parts) {
        for (const [label, create, code, details] of exceptions) {
          garden.fail = { part, create };
          const outcome = await callGarden(garden.port, { method });
          expect([part, label, outcome.code, outcome.details]).toEqual([part, label, code, details]);
        }
      }
      garden.fail = { part: "nobody", create: () => undefined };
      expect((await callGarden(garden.port, { method })).code).toBe(status.OK);
    });

    test("is PERMISSION_DENIED if a guard refuses the call", async () => {
      const garden = await start(require, rpc);
      garden.fail = { part: "guard", create: () => new RpcException("Forbidden resource") };
      const want = { code: status.PERMISSION_DENIED, details: "Forbidden resource" };
      expect(await callGarden(garden.port, { method })).toMatchObject(want);
    });

    test("sends the status of an HttpException that a filter passes on from each part", async () => {
      const garden = await start(require, rpc, true);
      for (const part of parts) {
        for (const [type, code] of httpExceptions) {
          garden.fail = { part, create: () => new (http[type] ?? Error)("no tree") };
          const outcome = await callGarden(garden.port, { method });
          expect([part, type, outcome.code, outcome.details]).toEqual([part, type, code, "no tree"]);
        }
      }
    });

    test("hides the message of any other error from each part", async () => {
      const garden = await start(require, rpc);
      for (const part of parts) {
        garden.fail = { part, create: () => new TypeError("secret") };
        const { code, details } = await callGarden(garden.port, { method });
        expect([part, code, details]).toEqual([part, status.UNKNOWN, expect.not.stringContaining("secret")]);
      }
    });
  });
});
