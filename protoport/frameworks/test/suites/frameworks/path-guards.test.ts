import { createServer, type RequestListener } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Address, exchangeHttp1, listenOnLoopback } from "@protoport/testing";
import { expressConnectMiddleware } from "../../../src/express.ts";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, pathOf, requireFrom } from "./frameworks.ts";

// An application guards a REST template's path. No spelling may pass the guard and reach the RPC.

type Response = { sendStatus(httpStatus: number): void };
type Request = { readonly params: Readonly<Record<string, string>> };
type Next = () => void;

interface Express {
  (): RequestListener & {
    use(handler: unknown): void;
    use(path: string, handler: (request: Request, response: Response, next: Next) => void): void;
  };
}

interface Fastify {
  addHook(name: "onRequest", hook: (request: { url: string }, reply: Reply) => Promise<unknown>): void;
  register(plugin: unknown, options: object): void;
  listen(options: object): Promise<string>;
  close(): Promise<void>;
}

type Reply = { code(status: number): { send(body: unknown): unknown } };
const gatewayOptions = greenhouse({ waterBed: ({ bed }) => ({ bed }), getReading: ({ sensor }) => ({ sensor }) });

const rows = [
  { name: "the guarded path", path: "/beds/7:water", express: 403, fastify: 403 },
  { name: "an escaped path literal", path: "/b%65ds/7:water", express: 404, fastify: 404 },
  { name: "an escaped path variable", path: "/beds/%37:water", express: 403, fastify: 403 },
  { name: "an escaped custom verb", path: "/beds/7:w%61ter", express: 403, fastify: 403 },
  { name: "a path with two leading slashes", path: "//beds/7:water", express: 404, fastify: 404 },
  { name: "a path with an escaped slash", path: "/beds%2F7:water", express: 404, fastify: 404 },
  { name: "a path with a trailing slash", path: "/beds/7:water/", express: 403, fastify: 403 },
  // Express compares without regard to case, the gateway does not.
  { name: "a path in another case", path: "/Beds/7:water", express: 403, fastify: 404 },
  { name: "a Connect path outside /beds", path: pathOf("WaterBed"), express: 200, fastify: 200 },
];

const absolute = { name: "an absolute URL", path: "http://x/beds/7:water", express: 403 };

async function post(address: Address, path: string): Promise<number> {
  const header = Object.entries({ "content-type": "application/json", connection: "close" });
  return (await exchangeHttp1(address, { httpMethod: "POST", path, header, body: Buffer.from("{}") })).httpStatus;
}

function addressOf(baseUrl: string): Address {
  const { hostname, port } = new URL(baseUrl);
  return { address: hostname, port: Number(port) };
}

describe.each(Object.entries(folders))("path guards in the %s major version", (_version, folder) => {
  const require = requireFrom(folder);
  const express: Express = require("express");
  const fastify: () => Fastify = require("fastify");

  async function serve(app: RequestListener): Promise<Address> {
    const server = createServer(app);
    onTestFinished(() => void server.close());
    return addressOf(await listenOnLoopback(server));
  }

  test.each([...rows, absolute])(
    "$name gets status $express behind Express middleware on /beds",
    async ({ path, express: wanted }) => {
      const app = express();
      app.use("/beds", (_request, response) => response.sendStatus(403));
      app.use(expressConnectMiddleware(gatewayOptions));
      expect(await post(await serve(app), path)).toBe(wanted);
    },
  );

  test("an Express middleware guard receives decoded path variables", async () => {
    const app = express();
    app.use("/beds/:bed", ({ params }, response, next) => {
      if (params["bed"] === "7:water") response.sendStatus(403);
      else next();
    });
    app.use(expressConnectMiddleware(gatewayOptions));
    const address = await serve(app);
    expect([await post(address, "/beds/%37:water"), await post(address, "/beds/8:water")]).toEqual([403, 200]);
  });

  test.each(rows)("$name gets status $fastify behind a Fastify hook on /beds", async ({ path, fastify: wanted }) => {
    const app = fastify();
    onTestFinished(() => app.close());
    app.addHook("onRequest", async ({ url }, reply) =>
      url.startsWith("/beds/") ? reply.code(403).send("no") : undefined,
    );
    app.register(fastifyConnectPlugin, gatewayOptions);
    expect(await post(addressOf(await app.listen({ host: "127.0.0.1", port: 0 })), path)).toBe(wanted);
  });
});
