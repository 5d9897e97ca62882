// Compiled, but not run. Checks the plugins' types with the oldest framework versions.
import { createContextKey, createContextValues, type ServiceImpl } from "@connectrpc/connect";
import type { DynamicModule } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express, { type Request } from "express";
import fastify, { type FastifyRequest } from "fastify";
import { expressConnectMiddleware } from "@protoport/frameworks/express";
import { fastifyConnectPlugin } from "@protoport/frameworks/fastify";
import { ConnectGateway, ConnectModule, implementedBy } from "@protoport/frameworks/nestjs";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { routes } from "../../../../../examples/servers/greenhouse.ts";

const addressKey = createContextKey("");
const app = fastify({ logger: true });
app.register(fastifyConnectPlugin, { routes, prefix: "/api" });
app.register(fastifyConnectPlugin, {
  // @ts-expect-error: the name of the handler is wrong.
  routes: (router) => router.service(GreenhouseService, { getReadings: () => ({}) }),
  contextValues: ({ ip }: FastifyRequest) => createContextValues().set(addressKey, ip),
});

const router = express.Router();
router.use(expressConnectMiddleware({ routes }));
router.use(
  expressConnectMiddleware({
    // @ts-expect-error: the name of the handler is wrong.
    routes: (connect) => connect.service(GreenhouseService, { getReadings: () => ({}) }),
    contextValues: ({ ip = "" }: Request) => createContextValues().set(addressKey, ip),
  }),
);

type Implementation = ServiceImpl<typeof GreenhouseService>;

declare class Greenhouse implements Implementation {
  constructor(dependency: Date);
  getReading: Implementation["getReading"];
  waterBed: Implementation["waterBed"];
  watchReadings: Implementation["watchReadings"];
  recordReadings: Implementation["recordReadings"];
  controlClimate: Implementation["controlClimate"];
}

declare class Misspelled {
  getReadings: Implementation["getReading"];
  waterBed: Implementation["waterBed"];
  watchReadings: Implementation["watchReadings"];
  recordReadings: Implementation["recordReadings"];
  controlClimate: Implementation["controlClimate"];
}

declare class SensorModule {
  readonly sensors: number;
}
declare const dynamicModule: DynamicModule;
// ConfigModule.forRoot() of @nestjs/config returns a promise.
declare const configModule: Promise<DynamicModule>;

const nest = await NestFactory.create(
  ConnectModule.forRoot({
    services: [
      implementedBy(GreenhouseService, Greenhouse),
      // @ts-expect-error: the name of a handler is wrong.
      implementedBy(GreenhouseService, Misspelled),
    ],
    imports: [
      SensorModule,
      dynamicModule,
      configModule,
      // @ts-expect-error: not a module.
      { providers: [] },
    ],
    contextValues: ({ ip = "" }: Request) => createContextValues().set(addressKey, ip),
  }),
);
nest.get(ConnectGateway).mount(nest);
