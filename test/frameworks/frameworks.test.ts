import { existsSync, symlinkSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../src/gateway/index.ts";
import { routes } from "../../examples/servers/greenhouse.ts";
import { projectFolder } from "../support/process/child-program.ts";
import { startExample } from "../support/docs/example-server.ts";
import type { Field, HttpRequest } from "../support/carriers/exchange.ts";
import { exchangeHttp1 } from "../support/carriers/http1-connection.ts";
import { listenOnLoopback } from "../support/carriers/listen-on-loopback.ts";
import { readOutcome } from "../support/gateway/outcome.ts";
import { rpcRequest, wireFormats } from "../support/gateway/wire-format.ts";

const folder = join(projectFolder, "examples/frameworks");
const json: Field = ["content-type", "application/json"];
const service = "/greenhouse.v1.GreenhouseService";

/** As much of Express as is needed here: its types are installed with it, which a fresh clone does not have. */
interface Express {
  (): RequestListener & { use(middleware: unknown): void };
  json(): unknown;
}

interface ExpressResponse {
  status(httpStatus: number): ExpressResponse;
  send(body: string): void;
}

function post(path: string, body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json], body: Buffer.from(body) };
}

beforeAll(() => {
  // What `npm install plantstore` does in an application.
  const installed = join(folder, "node_modules/plantstore");
  if (!existsSync(installed)) symlinkSync(projectFolder, installed);
});

describe.each(["express.ts", "fastify.ts", "hono.ts", "koa.ts", "nest.ts"])("the application %s", (file) => {
  test("answers REST, Connect and gRPC-Web by the gateway, and the rest by itself", async () => {
    await using server = await startExample(`frameworks/${file}`);
    const ask = async (request: HttpRequest): Promise<unknown> =>
      JSON.parse(String((await exchangeHttp1(server.address, request)).body));

    const reading = { httpMethod: "GET", path: "/sensors/palm/reading", header: [] };
    expect(await ask(reading)).toEqual({ sensor: "palm", degreesCelsius: 21 });
    expect(await ask(post("/beds/9007199254740993:water", '{"liters":3}'))).toEqual({
      bed: "9007199254740993",
      liters: 3,
    });
    expect(await ask(post(`${service}/GetReading`, '{"sensor":"door"}'))).toMatchObject({ degreesCelsius: 12.5 });
    const web = rpcRequest(wireFormats["grpc-web"], Buffer.of(), [], `${service}/WaterBed`);
    const answer = await exchangeHttp1(server.address, web);
    expect(readOutcome(wireFormats["grpc-web"], answer)).toEqual({ code: 0, message: "" });

    // A body that is not the gateway's still reaches the body parser behind it.
    expect(await ask(post("/echo", '{"to":"you"}'))).toEqual({ to: "you" });
    const page = await exchangeHttp1(server.address, { httpMethod: "GET", path: "/", header: [] });
    expect(String(page.body)).toBe("<h1>Greenhouse</h1>\n");
    const nothing = await exchangeHttp1(server.address, { httpMethod: "GET", path: "/nothing", header: [] });
    expect(nothing.httpStatus).toBe(404);
    expect(String(nothing.body)).not.toContain("there is nothing at this path");
  });
});

test("behind Express's body parser the gateway says what is wrong", async () => {
  const express: Express = createRequire(join(folder, "package.json"))("express");
  const app = express();
  app.use(express.json());
  app.use(createGateway({ routes }).handler);
  app.use(tell);
  const server = createServer(app);
  const { hostname, port } = new URL(await listenOnLoopback(server));
  const answer = await exchangeHttp1({ address: hostname, port: Number(port) }, post("/beds/7:water", "{}"));
  expect(answer.httpStatus).toBe(500);
  expect(String(answer.body)).toMatch(/mount the gateway before any body parser/);
  server.close();
});

function tell({ message }: Error, _request: unknown, response: ExpressResponse, _next: unknown): void {
  response.status(500).send(message);
}
