// The greenhouse in a NestJS application: npx node protoport/examples/frameworks/nest.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import "reflect-metadata";
import { Body, Controller, Get, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import helmet from "helmet";
import type { ServiceImpl } from "@connectrpc/connect";
import { ConnectGateway, ConnectModule, implementedBy } from "@protoport/frameworks/nestjs";
import { GreenhouseService } from "../gen/greenhouse/v1/greenhouse_pb.ts";
import { announce } from "../servers/announce.ts";
import { greenhouse } from "../servers/greenhouse.ts";

/** The provider. Its constructor can have dependencies, which `imports` of the module exports. */
class Greenhouse implements ServiceImpl<typeof GreenhouseService> {
  readonly getReading = greenhouse.getReading;
  readonly waterBed = greenhouse.waterBed;
  readonly watchReadings = greenhouse.watchReadings;
  readonly recordReadings = greenhouse.recordReadings;
  readonly controlClimate = greenhouse.controlClimate;
}

class PageController {
  page(): string {
    return "<h1>Greenhouse</h1>\n";
  }
  echo(body: unknown): unknown {
    return body;
  }
}
class AppModule {}

// Node.js strips types but does not support decorators. With Nest's compiler, write @Controller() and the others as usual.
const { prototype } = PageController;
Controller()(PageController);
Get()(prototype, "page", { value: prototype.page });
Post("echo")(prototype, "echo", { value: prototype.echo });
Body()(prototype, "echo", 0);
Module({
  controllers: [PageController],
  imports: [ConnectModule.forRoot({ services: [implementedBy(GreenhouseService, Greenhouse)] })],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.use(helmet());
app.enableCors({ origin: "https://shop.example" });
// Before init(), which adds Nest's body parser. Requests that the gateway does not serve continue to the controllers.
app.get(ConnectGateway).mount(app);
await app.init();
announce(app.getHttpServer());
