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

// Node strips types, but compiles no decorators. Nest's compiler lets you write @Controller() and so on at their place.
const { prototype } = PageController;
Controller()(PageController);
Get()(prototype, "page", { value: prototype.page });
Post("echo")(prototype, "echo", { value: prototype.echo });
Body()(prototype, "echo", 0);
Module({ controllers: [PageController] })(AppModule);

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.use(helmet());
app.enableCors({ origin: "https://shop.example" });
// Before Nest's body parser, which comes with init(). What is not the gateway's own goes on to the controllers.
app.use(createGateway({ routes }).handler);
await app.init();
announce(app.getHttpServer());
