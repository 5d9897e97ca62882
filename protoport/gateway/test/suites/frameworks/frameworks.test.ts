import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createGateway } from "../../../src/index.ts";
import { routes } from "../../../../examples/servers/greenhouse.ts";
// oxfmt-ignore
import { encodeEnvelope, exchangeHttp1, type Field, fieldValue, type HttpRequest, projectFolder, readOutcome,
  rpcRequest, startOnLoopback, wireFormats } from "@protoport/testing";
import { startExample } from "../../../../testing/src/process/example-server.ts";

const folder = join(projectFolder, "protoport/examples/frameworks");
const json: Field = ["content-type", "application/json"];
const service = "/greenhouse.v1.GreenhouseService";

/** The part of Express used here. Its types are installed with it, and missing in a fresh clone. */
interface Express {
  (): RequestListener & { use(middleware: unknown): void };
  json(options?: { verify(request: object, response: unknown, raw: Buffer): void }): unknown;
  raw(options: { type: string }): unknown;
  text(options: { type: string }): unknown;
  urlencoded(): unknown;
}

type ExpressResponse = { status(httpStatus: number): ExpressResponse; send(body: string): void };

function post(path: string, body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json], body: Buffer.from(body) };
}

describe.each(["express.ts", "fastify.ts", "hono.ts", "koa.ts", "nest.ts"])("the application %s", (file) => {
  test("serves REST, Connect and gRPC-Web through the gateway, and other paths itself", async () => {
    await using server = await startExample(`frameworks/${file}`);
    const ask = async (request: HttpRequest): Promise<unknown> =>
      JSON.parse(String((await exchangeHttp1(server.address, request)).body));

    const reading = { httpMethod: "GET", path: "/sensors/palm/reading", header: [] };
    expect(await ask(reading)).toEqual({ sensor: "palm", degreesCelsius: 21 });
    const want = { bed: "9007199254740993", liters: 3 };
    expect(await ask(post("/beds/9007199254740993:water", '{"liters":3}'))).toEqual(want);
    expect(await ask(post(`${service}/GetReading`, '{"sensor":"door"}'))).toMatchObject({ degreesCelsius: 12.5 });
    const web = rpcRequest(wireFormats["grpc-web"], Buffer.of(), [], `${service}/WaterBed`);
    const answer = await exchangeHttp1(server.address, web);
    expect(readOutcome(wireFormats["grpc-web"], answer)).toEqual({ code: 0, message: "" });

    // If the gateway does not handle a request, its body still reaches the body parser after it.
    expect(await ask(post("/echo", '{"to":"you"}'))).toEqual({ to: "you" });
    const page = await exchangeHttp1(server.address, { httpMethod: "GET", path: "/", header: [] });
    expect(String(page.body)).toBe("<h1>Greenhouse</h1>\n");
    const nothing = await exchangeHttp1(server.address, { httpMethod: "GET", path: "/nothing", header: [] });
    expect(nothing.httpStatus).toBe(404);
    expect(String(nothing.body)).not.toContain("no route matches this path");
  });
});

const origin: Field = ["origin", "https://shop.example"];

test.each([
  { file: "express.ts", ofHelmet: "nosniff" },
  { file: "fastify.ts", ofHelmet: "nosniff" },
  { file: "koa.ts", ofHelmet: undefined },
  { file: "nest.ts", ofHelmet: "nosniff" },
])("the gateway in $file keeps the header fields of CORS and helmet", async ({ file, ofHelmet }) => {
  await using server = await startExample(`frameworks/${file}`);
  for (const [path, httpStatus] of [
    ["/sensors/palm/reading", 200],
    ["/sensors/none/reading", 404],
  ] as const) {
    const answer = await exchangeHttp1(server.address, { httpMethod: "GET", path, header: [origin] });
    expect([answer.httpStatus, fieldValue(answer.header, "content-type")]).toEqual([httpStatus, "application/json"]);
    expect(fieldValue(answer.header, "access-control-allow-origin")).toBe("https://shop.example");
    expect(fieldValue(answer.header, "x-content-type-options")).toBe(ofHelmet);
  }
  const header: readonly Field[] = [origin, ["access-control-request-method", "GET"]];
  const sent = { httpMethod: "OPTIONS", path: "/sensors/palm/reading", header };
  const preflight = await exchangeHttp1(server.address, sent);
  expect(preflight.httpStatus).toBe(204);
  expect(fieldValue(preflight.header, "access-control-allow-methods")).toMatch(/GET/);
});

describe("the gateway after Express's body parsers", () => {
  const express: Express = createRequire(join(folder, "package.json"))("express");

  async function ask(parsers: readonly unknown[], request: HttpRequest): Promise<readonly [number, string]> {
    const app = express();
    for (const parser of parsers) app.use(parser);
    app.use(createGateway({ routes }).handler);
    app.use(tell);
    await using server = await startOnLoopback(createServer(app));
    const { httpStatus, body } = await exchangeHttp1(server.address, request);
    return [httpStatus, String(body)];
  }

  const waterBed = `${service}/WaterBed`;
  const lossless = '{"bed":9007199254740993,"liters":3}';
  const watered = '{"bed":"9007199254740993","liters":3}';

  test.each([
    { name: "json", parsers: [express.json()], path: "/beds/9007199254740993:water", body: '{"liters":3}' },
    { name: "json", parsers: [express.json()], path: waterBed, body: '{"bed":"9007199254740993","liters":3}' },
    { name: "raw", parsers: [express.raw({ type: "*/*" })], path: waterBed, body: lossless },
    { name: "text", parsers: [express.text({ type: "*/*" })], path: waterBed, body: lossless },
    {
      name: "json (with rawBody)",
      parsers: [express.json({ verify: (request, _, raw) => void Object.assign(request, { rawBody: raw }) })],
      path: waterBed,
      body: lossless,
    },
  ])("decodes $body at $path after the $name parser has run", async ({ parsers, path, body }) => {
    expect(await ask(parsers, post(path, body))).toEqual([200, watered]);
    const packed = post(path, body);
    const header: readonly Field[] = [json, ["content-encoding", "gzip"]];
    expect(await ask(parsers, { ...packed, header, body: gzipSync(body) })).toEqual([200, watered]);
  });

  test("serves a stream and a DELETE after the json parser", async () => {
    const stream: HttpRequest = {
      httpMethod: "POST",
      path: `${service}/RecordReadings`,
      header: [["content-type", "application/connect+json"]],
      body: encodeEnvelope(0, Buffer.from('{"sensor":"a"}')),
    };
    const [httpStatus, body] = await ask([express.json(), express.urlencoded()], stream);
    expect([httpStatus, body]).toEqual([200, expect.stringContaining('"count":1')]);
  });

  test("returns 415 for a form, even after the urlencoded parser", async () => {
    const header: readonly Field[] = [["content-type", "application/x-www-form-urlencoded"]];
    const [httpStatus, body] = await ask([express.urlencoded()], { ...post("/beds/7:water", "liters=3"), header });
    expect([httpStatus, body]).toEqual([415, expect.stringMatching(/must be application\/json/)]);
  });
});

function tell({ message }: Error, _request: unknown, response: ExpressResponse, _next: unknown): void {
  response.status(500).send(message);
}
