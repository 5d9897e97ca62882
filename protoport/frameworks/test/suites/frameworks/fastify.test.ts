import type { Server } from "node:net";
import { PassThrough } from "node:stream";
import { createClient, createContextKey, createContextValues } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { routes } from "../../../../examples/servers/greenhouse.ts";
import { readOutcome, rpcRequest, wireFormats } from "@protoport/testing";
import { type FastifyLike, fastifyConnectPlugin, type FastifyRequestLike } from "../../../src/fastify.ts";
import { folders, greenhouse, pathOf, requireFrom } from "./frameworks.ts";

type Reply = { code(status: number): Reply; send(body: unknown): Reply; header(name: string, value: string): Reply };

interface Request extends FastifyRequestLike {
  readonly body: unknown;
  user?: string;
}

interface Injected {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly rawPayload: Buffer;
  json(): unknown;
}

interface Application extends Omit<FastifyLike, "addHook"> {
  readonly server: Server;
  register(plugin: unknown, options?: object): void;
  addHook(name: string, hook: (request: Request, reply: Reply) => Promise<unknown>): void;
  setNotFoundHandler(handler: (request: Request, reply: Reply) => void): void;
  post(path: string, handler: (request: Request, reply: Reply) => unknown): void;
  inject(request: object): Promise<Injected>;
  listen(options: object): Promise<string>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

const reading = { method: "GET", url: "/sensors/palm/reading" };
const call = { method: "POST", url: pathOf("GetReading"), payload: { sensor: "door" } };
const origin = "https://shop.example";

describe.each(Object.entries(folders))("Fastify, %s major version", (version, folder) => {
  const require = requireFrom(folder);
  const fastify: (options?: object) => Application = require("fastify");

  function create(options?: object): Application {
    const app = fastify(options);
    onTestFinished(() => app.close());
    return app;
  }

  test("the plugin serves all protocols, and the application serves other requests", async () => {
    const app = create();
    app.register(fastifyConnectPlugin, { routes });
    app.post("/echo", async ({ body }) => body);
    app.setNotFoundHandler((_request, reply) => void reply.code(404).send({ page: "none" }));
    expect((await app.inject(reading)).json()).toEqual({ sensor: "palm", degreesCelsius: 21 });
    expect((await app.inject(call)).json()).toEqual({ sensor: "door", degreesCelsius: 12.5 });
    const web = rpcRequest(wireFormats["grpc-web"], Buffer.of(), [], pathOf("WaterBed"));
    const { httpMethod, path, header, body } = web;
    const webCall = { method: httpMethod, url: path, headers: Object.fromEntries(header), payload: body };
    const { statusCode, headers, rawPayload } = await app.inject(webCall);
    const response = { httpStatus: statusCode, header: Object.entries(headers), body: rawPayload, trailer: [] };
    expect(readOutcome(wireFormats["grpc-web"], response)).toEqual({ code: 0, message: "" });
    expect((await app.inject({ method: "POST", url: "/echo", payload: { to: "you" } })).json()).toEqual({ to: "you" });
    expect((await app.inject({ method: "GET", url: "/none" })).json()).toEqual({ page: "none" });
    const invalid = await app.inject({ ...call, headers: { "content-type": "application/json" }, payload: "{" });
    expect([invalid.statusCode, invalid.json()]).toEqual([400, expect.objectContaining({ code: "invalid_argument" })]);
  });

  test("responses have header fields from @fastify/helmet and @fastify/cors", async () => {
    const app = create();
    app.register(require("@fastify/helmet"));
    app.register(require("@fastify/cors"), { origin });
    app.register(fastifyConnectPlugin, { routes });
    const { statusCode, headers } = await app.inject({ ...reading, headers: { origin } });
    const added = ["x-frame-options", "access-control-allow-origin"].map((name) => headers[name]);
    expect([statusCode, ...added]).toEqual([200, "SAMEORIGIN", origin]);
    const preflight = { origin, "access-control-request-method": "POST" };
    expect((await app.inject({ method: "OPTIONS", url: call.url, headers: preflight })).statusCode).toBe(204);
  });

  test("an onRequest hook can refuse a call by replying", async () => {
    const app = create();
    const statuses: number[] = [];
    app.addHook("onRequest", async ({ raw }, reply) =>
      raw.headers["authorization"] === undefined ? reply.code(401).send({ who: "are you?" }) : undefined,
    );
    app.addHook("onResponse", async ({ raw }, reply) => {
      statuses.push(Number(Reflect.get(reply, "statusCode")), raw.url === reading.url ? 1 : 0);
    });
    app.register(fastifyConnectPlugin, { routes });
    expect((await app.inject(reading)).json()).toEqual({ who: "are you?" });
    expect((await app.inject({ ...reading, headers: { authorization: "Bearer a" } })).statusCode).toBe(200);
    expect(statuses).toEqual([401, 1, 200, 1]);
  });

  test("`contextValues` gets Fastify's request", async () => {
    const userKey = createContextKey("nobody");
    const app = create();
    app.addHook("onRequest", async (request) => void (request.user = "ada"));
    app.register(fastifyConnectPlugin, {
      ...greenhouse({ getReading: (_request, { values }) => ({ sensor: values.get(userKey) }) }),
      contextValues: ({ user = "" }: Request) => createContextValues().set(userKey, user),
    });
    expect((await app.inject(reading)).json()).toMatchObject({ sensor: "ada" });
  });

  const custom = { info() {}, warn() {}, debug() {}, fatal() {}, trace() {} };
  test.each<[name: string, options: (lines: string[]) => object, printed: boolean, logged: boolean]>(
    // oxfmt-ignore
    [
      ["without a logger", () => ({}), true, false],
      ["with the logger off", () => ({ logger: false }), true, false],
      ["with a logger", (lines) => ({ logger: { stream: to(lines) } }), false, true],
      ["with a silent logger", (lines) => ({ logger: { level: "silent", stream: to(lines) } }), false, false],
      ["with a logger that has no level", (lines) => {
          const log = { ...custom, error: ({ err }: { err: Error }) => void lines.push(err.message), child: () => log };
          return version === "oldest" ? { logger: log } : { loggerInstance: log };
        }, false, true],
    ],
  )("%s, a fault is logged, or else printed to standard error", async (_name, options, printed, logged) => {
    using print = vi.spyOn(console, "error").mockReturnValue();
    const [lines, faults]: string[][] = [[], []];
    const app = create(options(lines ?? []));
    const failing = greenhouse({ getReading: () => Promise.reject(new Error("disk on fire")) });
    app.register(fastifyConnectPlugin, failing);
    // Another plugin reports its faults to the application.
    const onFault = (error: Error): unknown => faults?.push(error.message);
    app.register(fastifyConnectPlugin, { ...failing, prefix: "/other", onFault });
    expect((await app.inject(reading)).statusCode).toBe(500);
    expect((await app.inject({ ...reading, url: `/other${reading.url}` })).statusCode).toBe(500);
    expect(countFaults(print.mock.calls.flat())).toBe(printed ? 1 : 0);
    expect([countFaults(lines ?? []), faults]).toEqual([logged ? 1 : 0, ["disk on fire"]]);
  });

  test.each([
    ["x-user", "李", "value"],
    ["x-user", "a\nx-admin: 1", "value"],
    ["x user", "a", "name"],
  ])("a field %s: %j that a hook sets is reported instead of sent", async (name, value, part) => {
    const app = create();
    const faults: unknown[] = [];
    app.addHook("onRequest", async (_request, reply) => reply.header(name, value).header("x-kept", "a") && undefined);
    app.register(fastifyConnectPlugin, {
      ...greenhouse({ getReading: ({ sensor }) => ({ sensor }) }),
      onFault: (error: Error, _what: string, _request: unknown, errorCode: string) =>
        void faults.push([error.message, errorCode]),
    });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const { status, headers } = await fetch(url + reading.url);
    const added = ["x-user", "x-admin", "x-kept"].map((field) => headers.get(field));
    expect([status, ...added]).toEqual([200, null, null, "a"]);
    expect(faults).toEqual([[expect.stringContaining(part), "ERR_HEADER_FIELD"]]);
  });

  test("without a logger, a path outside the prefix is a warning of the process", async () => {
    const warnings: string[] = [];
    const add = ({ message }: Error): unknown => warnings.push(message);
    process.on("warning", add);
    onTestFinished(() => void process.off("warning", add));
    const app = create();
    const endpoint = { path: "/.well-known/page", atRoot: true, open: true };
    const endpoints = [{ ...endpoint, handle: () => ({ httpStatus: 200, body: "" }) }];
    app.register(fastifyConnectPlugin, { ...greenhouse({}), endpoints, prefix: "/api" });
    await app.ready();
    const warning = "/.well-known/page is not served: it is outside the prefix /api of fastifyConnectPlugin";
    await expect.poll(() => warnings).toContain(warning);
  });

  test("faults are logged with the request id, and hidden from clients", async () => {
    const stream = new PassThrough({ encoding: "utf8" });
    const app = create({ logger: { stream, level: "error" }, genReqId: () => "req-of-test" });
    app.register(fastifyConnectPlugin, greenhouse({ getReading: () => Promise.reject(new Error("disk on fire")) }));
    const { statusCode, body } = await app.inject(reading);
    expect([statusCode, body]).toEqual([500, expect.not.stringContaining("disk")]);
    await expect.poll(() => stream.readableLength).toBeGreaterThan(0);
    const error = { errorCode: "ERR_HANDLER_FAILED", err: { message: "disk on fire" } };
    const logged = { reqId: "req-of-test", procedure: pathOf("GetReading") };
    expect(JSON.parse(stream.read())).toMatchObject({ ...logged, ...error });
  });

  test("a misspelled handler is refused by `ready`", async () => {
    const app = create();
    const misspelled: object = { getReadings: () => ({}) };
    app.register(fastifyConnectPlugin, greenhouse(misspelled));
    await expect(app.ready()).rejects.toThrow('has no RPC "getReadings", did you mean "getReading"?');
    // If an application did not start, its `close` rejects with the same error.
    await expect(app.close().catch(() => "rejected")).resolves.toBeOneOf([undefined, "rejected"]);
  });

  test("gRPC is served over HTTP/2", async () => {
    const app = create({ http2: true });
    app.register(fastifyConnectPlugin, { routes });
    const baseUrl = await app.listen({ host: "127.0.0.1", port: 0 });
    const client = createClient(GreenhouseService, createGrpcTransport({ baseUrl, idleConnectionTimeoutMs: 50 }));
    expect(await client.getReading({ sensor: "palm" })).toMatchObject({ degreesCelsius: 21 });
    await expect(client.getReading({ sensor: "none" })).rejects.toThrow('[not_found] there is no sensor "none"');
  });
});

const to = (lines: string[]): PassThrough => new PassThrough().on("data", (line) => void lines.push(String(line)));

function countFaults(lines: readonly unknown[]): number {
  return lines.filter((line) => String(line).includes("disk on fire")).length;
}
