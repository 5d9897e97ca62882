// Compiled, not run: the types of the plugins with the oldest versions of the frameworks.
import { createContextKey, createContextValues } from "@connectrpc/connect";
import express, { type Request } from "express";
import fastify, { type FastifyRequest } from "fastify";
import { expressConnectMiddleware } from "@plantstore/frameworks/express";
import { fastifyConnectPlugin } from "@plantstore/frameworks/fastify";
import { GreenhouseService } from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { routes } from "../../../../../../examples/servers/greenhouse.ts";

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
