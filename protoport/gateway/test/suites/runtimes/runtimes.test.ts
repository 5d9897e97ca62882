import { once } from "node:events";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, type CommandLine, createTempFolder, exchangeHttp1, type Field, fieldValue, type HttpRequest,
  type HttpResponse, openHttp1, readOutcome, rpcRequest, startProgram, wireFormats } from "@protoport/testing";
import { bundleForWeb, prepareWorkerd, resolveRuntime } from "./workerd.ts";

// The examples over Fetch, each on its runtime, bundled as for a worker, without node.

const folder = createTempFolder();

/** How to start a runtime with a bundled program, and the port on which the program listens. */
// oxfmt-ignore
const runtimes = [
  { name: "Deno", example: "deno", command: "@deno/linux-x64-glibc/deno",
    args: ["run", "--no-config", "--allow-net=127.0.0.1", folder.file("deno.mjs"), "0"] },
  { name: "Bun", example: "bun", command: "@oven/bun-linux-x64/bin/bun", args: [folder.file("bun.mjs"), "0"] },
  { name: "workerd", example: "worker", command: "@cloudflare/workerd-linux-64/bin/workerd",
    args: prepareWorkerd(folder) },
] as const;

beforeAll(async () => {
  for (const { example } of runtimes)
    await bundleForWeb(`protoport/examples/fetch/${example}.ts`, folder.file(`${example}.mjs`));
});

afterAll(() => folder[Symbol.dispose]());
const service = "/greenhouse.v1.GreenhouseService";
const json: Field = ["content-type", "application/json"];
const get = (path: string, ...header: Field[]): HttpRequest => ({ httpMethod: "GET", path, header });
const water = (body: Uint8Array | string): HttpRequest => ({
  httpMethod: "POST",
  path: "/beds/9007199254740993:water",
  header: [json],
  body: Buffer.from(body),
});

describe.each(runtimes)("the gateway on $name", ({ name, command, args }) => {
  let running: CommandLine;
  let address: Address;
  const ask = async (request: HttpRequest): Promise<HttpResponse> => await exchangeHttp1(address, request);

  beforeAll(async () => {
    running = startProgram(resolveRuntime(command), args, folder.path);
    const [, written = "", announced = ""] = await running.find(/http:\/\/127\.0\.0\.1:(\d+)|"port":(\d+)/);
    address = { address: "127.0.0.1", port: Number(written === "" ? announced : written) };
  });
  afterAll(() => running[Symbol.asyncDispose]());

  test.each(
    // oxfmt-ignore
    [
      { request: get("/sensors/palm/reading"), httpStatus: 200, body: '{"sensor":"palm","degreesCelsius":21}' },
      { request: { ...get("/sensors/palm/reading"), httpMethod: "HEAD" }, httpStatus: 200, body: "" },
      { request: water('{"liters":3}'), httpStatus: 200, body: '{"bed":"9007199254740993","liters":3}' },
      { request: water("{"), httpStatus: 400, body: /^\{"code":3,/ },
      { request: get("/nowhere"), httpStatus: 404, body: /^\{"code":5,/ },
      { request: { ...get("/sensors/palm/reading"), httpMethod: "PUT" }, httpStatus: 405, body: /^\{"code":12,/ },
      { request: get("/sensors/palm/readings?count=2"), httpStatus: 200,
        body: '{"sensor":"palm","degreesCelsius":21}\n'.repeat(2) },
      { request: get("/sensors/palm/readings?count=1", ["accept", "text/event-stream"]), httpStatus: 200,
        body: 'retry: 3000\ndata: {"sensor":"palm","degreesCelsius":21}\n\nevent: end\ndata: {}\n\n' },
      { request: get("/sensors/none/readings?count=1"), httpStatus: 404, body: /^\{"code":5,/ },
    ],
  )("$request.httpMethod $request.path gets a $httpStatus response", async ({ request, httpStatus, body }) => {
    const response = await ask(request);
    expect(response.httpStatus).toBe(httpStatus);
    if (typeof body === "string") expect(response.body.toString()).toBe(body);
    else expect(response.body.toString()).toMatch(body);
  });

  // workerd closes a connection on which the client still sends, so the response may be lost.
  if (name !== "workerd")
    test("refuses a body over its limit with 413", async () =>
      expect((await ask(water(Buffer.alloc(5_000_000, " ")))).httpStatus).toBe(413));

  test.each(["connect-json", "connect-proto", "grpc-web", "grpc-web-text"] as const)(
    "an RPC in %s gets a response",
    async (format) => {
      const message = format === "connect-json" ? Buffer.from('{"bed":"1"}') : Buffer.from([8, 1]);
      const response = await ask(rpcRequest(wireFormats[format], message, [], `${service}/WaterBed`));
      expect(readOutcome(wireFormats[format], response)).toEqual({ code: 0, message: "" });
    },
  );

  test("refuses gRPC", async () =>
    expect((await ask(rpcRequest(wireFormats.grpc, Buffer.of(), [], `${service}/WaterBed`))).httpStatus).toBe(415));

  test("serves other calls after a client cancels a stream", async () => {
    using connection = await openHttp1(address);
    connection.request(get("/sensors/palm/readings?count=1000000000"));
    await once(connection.socket, "data");
    connection.socket.destroy();
    expect((await ask(get("/sensors/palm/reading"))).httpStatus).toBe(200);
  });

  test.each([
    { coding: "identity", body: Buffer.from('{"degreesCelsius":1}\n{"degreesCelsius":3}\n') },
    { coding: "gzip", body: gzipSync('{"degreesCelsius":1}\n{"degreesCelsius":3}\n') },
  ])("reads a client stream with $coding coding over REST", async ({ coding, body }) => {
    const header: Field[] = Object.entries({ "content-type": "application/x-ndjson", "content-encoding": coding });
    const response = await ask({ httpMethod: "POST", path: "/readings", header, body });
    expect(response.body.toString()).toBe('{"count":2,"meanDegreesCelsius":2}');
  });

  test("decompresses requests and compresses responses with gzip", async () => {
    const note = "wet ".repeat(1000);
    const request = water(gzipSync(JSON.stringify({ note })));
    const coded: Field[] = Object.entries({ "content-encoding": "gzip", "accept-encoding": "gzip" });
    const response = await ask({ ...request, header: [...request.header, ...coded] });
    expect(fieldValue(response.header, "content-encoding")).toBe("gzip");
    expect(JSON.parse(gunzipSync(response.body).toString())).toMatchObject({ note });
  });
});
