// A controller for gRPC over all protocols, with a guard and a filter: npx node protoport/examples/frameworks/nest-grpc.ts 8080
//   curl -H "Authorization: Bearer gardener" http://127.0.0.1:8080/sensors/palm/reading
import "reflect-metadata";
import { join } from "node:path";
import { type Metadata, status } from "@grpc/grpc-js";
import {
  type CanActivate,
  Catch,
  Controller,
  type ExecutionContext,
  Module,
  UseFilters,
  UseGuards,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type GrpcOptions, GrpcMethod, GrpcStreamMethod, RpcException, ServerGrpc } from "@nestjs/microservices";
import { createGatewayStrategy } from "@protoport/grpc-handlers/nestjs";
import { from, map, type Observable, throwError } from "rxjs";

const port = Number(process.argv[2] ?? 8080);

class NoSensorError extends Error {}

class GardenerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const metadata = context.switchToRpc().getContext<Metadata>();
    if (metadata.get("authorization")[0] === "Bearer gardener") return true;
    throw new RpcException({ code: status.UNAUTHENTICATED, message: "only gardeners may enter" });
  }
}

class NoSensorFilter {
  catch(error: NoSensorError): Observable<never> {
    return throwError(() => ({ code: status.NOT_FOUND, message: error.message }));
  }
}

interface Reading {
  readonly sensor: string;
  readonly degreesCelsius: number;
}

class GreenhouseController {
  getReading({ sensor }: { sensor: string }): Reading {
    if (sensor !== "palm") throw new NoSensorError(`there is no sensor ${sensor}`);
    return { sensor, degreesCelsius: 21 };
  }
  watchReadings({ sensor, count }: { sensor: string; count: number }): Observable<Reading> {
    return from(Array.from({ length: count }, () => this.getReading({ sensor })));
  }
  controlClimate(readings: Observable<Reading>): Observable<object> {
    return readings.pipe(
      map(({ sensor, degreesCelsius }) => ({ sensor, heatWatts: Math.max(0, 20 - degreesCelsius) * 100 })),
    );
  }
}
class AppModule {}

// Node.js strips types but does not support decorators. With Nest's compiler, write @Controller() and the others as usual.
const { prototype } = GreenhouseController;
for (const [method, decorate] of [
  ["getReading", GrpcMethod],
  ["watchReadings", GrpcMethod],
  ["controlClimate", GrpcStreamMethod],
] as const) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method) ?? {};
  decorate("GreenhouseService")(prototype, method, descriptor);
  Object.defineProperty(prototype, method, descriptor);
}
Catch(NoSensorError)(NoSensorFilter);
UseGuards(GardenerGuard)(GreenhouseController);
UseFilters(NoSensorFilter)(GreenhouseController);
Controller()(GreenhouseController);
Module({ controllers: [GreenhouseController] })(AppModule);

// In this repository, and in a project that installs the packages.
const annotations = ["protoport/gateway/proto", "node_modules/@protoport/gateway/proto"];
const options: GrpcOptions["options"] = {
  package: "greenhouse.v1",
  protoPath: "greenhouse/v1/greenhouse.proto",
  loader: { includeDirs: [join(import.meta.dirname, "../proto"), ...annotations] },
};
// Before: NestFactory.createMicroservice(AppModule, { transport: Transport.GRPC, options: { ...options, url } })
const strategy = createGatewayStrategy(ServerGrpc, options, { listen: { host: "127.0.0.1", port } });
const app = await NestFactory.createMicroservice(AppModule, { strategy, logger: ["error", "warn"] });
await app.listen();
console.log(`http://127.0.0.1:${String(port)}`);
