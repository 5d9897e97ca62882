// The greenhouse in a NestJS application: npx node examples/frameworks/nest.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import "reflect-metadata";
import { Body, Controller, Get, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import helmet from "helmet";
import { createGateway } from "@plantstore/gateway";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

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
Module({ controllers: [PageController] })(AppModule);

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.use(helmet());
app.enableCors({ origin: "https://shop.example" });
// Before init(), which adds Nest's body parser. Requests that the gateway does not serve continue to the controllers.
app.use(createGateway({ routes }).handler);
await app.init();
announce(app.getHttpServer());
