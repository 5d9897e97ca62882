import { once } from "node:events";
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
// oxfmt-ignore
import { connect as connectHttp2, constants, createSecureServer, createServer as createHttp2, type Http2ServerRequest,
  type Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { Code, ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService, type Reading } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type Gateway, type GatewayOptions, type NodeHandler } from "../src/index.ts";
// oxfmt-ignore
import { createByteReader, createCertificate, exchange, type Field, fieldValue, getReadingProcedure, type HttpRequest,
  type HttpVersion, listenOnLoopback, type LoopbackServer, openHttp1, openHttp2, openUpload, overHttp1, rpcRequest,
  startOnLoopback, throws, waterBedProcedure, wireFormats, within } from "@protoport/testing";

const json: Field = ["content-type", "application/json"];
const ndjson: Field = ["content-type", "application/x-ndjson"];
const get = (path: string): HttpRequest => ({ httpMethod: "GET", path, header: [] });
const noteBody = Buffer.from('{"note":"n"}');
const water: HttpRequest = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: noteBody };
const tenantKey = createContextKey("nobody");
type Response = Parameters<NodeHandler>[1];

/** Starts a node server with a listener. */
const serve = async (version: HttpVersion, listener: NodeHandler): Promise<LoopbackServer> =>
  await startOnLoopback(version === "1.1" ? createHttp1(listener) : createHttp2(listener));

const mount = (options: Partial<GatewayOptions> = {}): NodeHandler => createGreenhouse(options).handler;

/** Creates a gateway that counts readings after `first` has resolved. */
function createGreenhouse(options: Partial<GatewayOptions>, first: Promise<void> = Promise.resolve()): Gateway {
  const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
  return createGateway({
    rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] },
    routes: (router) =>
      router.service(GreenhouseService, {
        waterBed: ({ bed, note }, { values }) => ({ bed, note: `${note} ${values.get(tenantKey)}` }),
        getReading: ({ sensor }, { responseTrailer }) => (responseTrailer.set("x-trailer", "last"), { sensor }),
        recordReadings: async (readings: AsyncIterable<Reading>) => {
          let count = 0;
          for await (const _ of readings) if (++count === 1) await first;
          return { count };
        },
      }),
    ...options,
  });
}

/** The rest of an application, which responds with the request that it received. */
function application(request: IncomingMessage | Http2ServerRequest, response: Response): void {
  void text(request).then((body) => {
    response.setHeader("x-app", "yes");
    response.end(`${String(request.method)} ${String(request.url)} ${body}`);
  });
}

/** An application that sends trailers. */
function trailing(_: unknown, response: Response): void {
  response.addTrailers({ "x-app-trailer": "yes" });
  response.end("app");
}

function writeMoss(_: unknown, response: Response): void {
  response.write("mo");
  response.write("ss", "utf8");
  response.end();
}

/** A request to water bed 7 whose name is `refused`. */
function requestRefused(httpVersion: string, fields: readonly string[], body: string): string {
  const lines = [`POST /beds/7:water HTTP/${httpVersion}`, "host: x", "x-request-id: refused", ...fields, "", body];
  return lines.join("\r\n");
}

/** A gateway that does not admit a request with the name `refused`, and the beds that were watered. */
function createBeds(): Pick<Gateway, "handler" | "checkContinue"> & { readonly watered: string[] } {
  const watered: string[] = [];
  const { handler, checkContinue } = createGateway({
    admit: ({ xRequestId }) => {
      if (xRequestId === "refused") throw new ConnectError("nobody", Code.Unauthenticated);
    },
    routes: (router) => router.service(GreenhouseService, { waterBed: ({ bed }) => (watered.push(String(bed)), {}) }),
  });
  return { handler, checkContinue, watered };
}

const statuses = (answers: Buffer): readonly string[] =>
  [...String(answers).matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => String(match[1]));

const versions: readonly HttpVersion[] = ["1.1", "2"];

describe("the handler in an HTTP/1.1 server", () => {
  test.each([
    { name: "a small body", framing: ["content-length", "262144"], want: "keep-alive" },
    { name: "a large body", framing: ["content-length", "262145"], want: "close" },
    { name: "a body without Content-Length", framing: ["transfer-encoding", "chunked"], want: "close" },
  ] as const)("responds with Connection: $want before $name arrives completely", async ({ framing, want }) => {
    await using server = await serve("1.1", mount());
    using connection = await openHttp1(server.address);
    connection.request({ ...water, path: "/nothing", header: [json, framing], body: Buffer.of() });
    const answer = await connection.readResponse();
    expect([answer.httpStatus, fieldValue(answer.header, "connection")]).toEqual([404, want]);
  });

  test("serves the next request after responding while the body is paused", async () => {
    const paused = Promise.withResolvers<void>();
    const recordReadings = async (readings: AsyncIterable<Reading>): Promise<object> => {
      await readings[Symbol.asyncIterator]().next();
      await within(paused.promise, "the pause");
      return {};
    };
    const routes: GatewayOptions["routes"] = (router) => router.service(GreenhouseService, { recordReadings });
    const handler = mount({ routes });
    const server = createHttp1((request, response) => handler(request.once("pause", paused.resolve), response));
    await using started = await startOnLoopback(server);
    using connection = await openHttp1(started.address);
    const body = Buffer.alloc(262_144, '{"sensor":"s"}\n');
    for (let calls = 1; calls <= 2; calls++) {
      connection.request({ httpMethod: "POST", path: "/readings", header: [ndjson], body });
      expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    }
  });

  const preflight = "host: x\r\norigin: https://shop.example\r\naccess-control-request-method: POST";
  const kept = "host: x\r\nconnection: keep-alive\r\ncontent-type: application/json\r\ncontent-length: 2";
  test.each([
    ["a preflight", `OPTIONS /beds/7:water HTTP/1.1\r\n${preflight}\r\n\r\n`, 204],
    ["an HTTP/1.0 call with keep-alive", `POST /beds/7:water HTTP/1.0\r\n${kept}\r\n\r\n{}`, 200],
  ])("after %s, serves the next request on the connection", async (_name, request, want) => {
    await using server = await serve("1.1", mount({ cors: { origins: ["https://shop.example"] } }));
    using connection = await openHttp1(server.address);
    for (const _ of [1, 2]) {
      connection.write(request);
      expect((await connection.readResponse()).httpStatus).toBe(want);
    }
  });

  test.each([
    { version: "1.0", want: ["404"] },
    { version: "1.1", want: ["400"] },
  ])("responds with $want.0 to an HTTP/$version request without Host", async ({ version, want }) => {
    await using server = await startOnLoopback(createHttp1({ requireHostHeader: false }, mount()));
    using connection = await openHttp1(server.address);
    connection.write(`GET /nowhere HTTP/${version}\r\nconnection: close\r\n\r\n`);
    expect(statuses(await connection.readToEnd())).toEqual(want);
  });

  test("refuses an HTTP/1.0 request with a chunked body and ignores later ones", async () => {
    const answered: number[] = [];
    const handler = mount({ onResponse: ({ httpStatus }) => answered.push(httpStatus) });
    const whenThere: NodeHandler = (request, response) => {
      if (request.complete) handler(request, response);
      else setImmediate(() => whenThere(request, response));
    };
    await using server = await serve("1.1", whenThere);
    using connection = await openHttp1(server.address);
    const fields = "host: x\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\ncontent-type: application/json";
    const behind = "POST /beds/8:water HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    connection.write(`POST /beds/7:water HTTP/1.0\r\n${fields}\r\n\r\n2\r\n{}\r\n0\r\n\r\n${behind}`);
    expect([statuses(await connection.readToEnd()), answered]).toEqual([["400"], []]);
  });

  describe("a response with Connection: close", () => {
    const behind = "POST /beds/8:water HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    const inAnotherCoding = requestRefused("1.1", ["transfer-encoding: gzip, chunked"], "0\r\n\r\n");

    test.each(
      // oxfmt-ignore
      [
        ["a request with an unsupported transfer coding", inAnotherCoding, "501"],
        ["a keep-alive request with an unsupported transfer coding",
          requestRefused("1.1", ["connection: keep-alive", "transfer-encoding: gzip, chunked"], "0\r\n\r\n"), "501"],
        ["an HTTP/1.0 request with a chunked body",
          requestRefused("1.0", ["connection: keep-alive", "transfer-encoding: chunked"], "0\r\n\r\n"), "400"],
        ["a request that is not admitted", requestRefused("1.1", ["transfer-encoding: chunked"], "0\r\n\r\n"), "401"],
        ["a request with Expect: 100-continue",
          requestRefused("1.1", ["expect: 100-continue", "content-length: 0"], ""), "401"],
      ],
    )("to %s is the last one on its connection", async (_, request, want) => {
      const { handler, checkContinue, watered } = createBeds();
      await using server = await startOnLoopback(createHttp1(handler).on("checkContinue", checkContinue));
      using connection = await openHttp1(server.address);
      connection.write(request + behind);
      const answers = await connection.readToEnd();
      expect(String(answers)).toMatch(/^connection: close\r$/im);
      expect({ statuses: statuses(answers), watered }).toEqual({ statuses: [want], watered: [] });
    });

    test("does not cancel earlier pipelined requests", async () => {
      const { handler, watered } = createBeds();
      const allThere = Promise.withResolvers<void>();
      await using server = await serve("1.1", (request, response) => {
        if (request.url === "/slow") void allThere.promise.then(() => response.end("slow"));
        else if (request.url === "/beds/6:water") setImmediate(() => handler(request, response));
        else handler(request, response);
        if (request.url === "/beds/8:water") setImmediate(allThere.resolve);
      });
      using connection = await openHttp1(server.address);
      const before = behind.replace("/8:", "/6:");
      connection.write(`GET /slow HTTP/1.1\r\nhost: x\r\n\r\n${before}${inAnotherCoding}${behind}`);
      expect([statuses(await connection.readToEnd()), watered]).toEqual([["200", "200", "501"], ["6"]]);
    });

    test("does not prevent next() for a later request", async () => {
      const { handler } = createBeds();
      const passedOn = Promise.withResolvers<void>();
      await using server = await serve("1.1", (request, response) => {
        const pass = (): void => handler(request, response, () => passedOn.resolve());
        if (request.url === "/x") request.socket.once("finish", pass);
        else pass();
      });
      using connection = await openHttp1(server.address);
      connection.write(`${inAnotherCoding}GET /x HTTP/1.1\r\nhost: x\r\n\r\n`);
      await within(passedOn.promise, "next()");
    });
  });
});

describe.each(versions)("the handler in an HTTP/%s server", (version) => {
  test("sends fields named like object properties in header and trailer", async () => {
    const names = ["constructor", "__proto__"];
    const routes: GatewayOptions["routes"] = (router) =>
      router.service(GreenhouseService, {
        getReading: (_, { responseHeader, responseTrailer }) => {
          for (const name of names) {
            responseHeader.set(name, "header");
            responseTrailer.set(name, "trailer");
          }
          return {};
        },
      });
    await using server = await serve(version, mount({ routes }));
    const request = rpcRequest(wireFormats.grpc, Buffer.of(), [], getReadingProcedure);
    const { header, trailer } = await exchange(server.address, version, request);
    expect(names.map((name) => fieldValue(header, name))).toEqual(names.map(() => "header"));
    expect(names.map((name) => fieldValue(trailer, name))).toEqual(names.map(() => "trailer"));
  });

  test("creates context values from the request", async () => {
    const contextValues: NonNullable<GatewayOptions["contextValues"]> = (request) =>
      createContextValues().set(tenantKey, String(request.headers["x-tenant"]));
    await using server = await serve(version, mount({ contextValues }));
    const answer = await exchange(server.address, version, { ...water, header: [json, ["x-tenant", "alice"]] });
    expect(JSON.parse(String(answer.body))).toMatchObject({ note: "n alice" });
  });

  test("gets the address of the client from the option clientAddress", async () => {
    const peers: unknown[] = [];
    const admit: GatewayOptions["admit"] = ({ peer }) => void peers.push(peer.address);
    await using server = await serve(version, mount({ admit, clientAddress: () => "192.0.2.1" }));
    await exchange(server.address, version, water);
    expect(peers).toEqual(["192.0.2.1"]);
  });

  describe("an unmatched request", () => {
    const others: readonly HttpRequest[] = [
      get("/"),
      { httpMethod: "POST", path: "/upload?to=7", header: [json], body: Buffer.from("orders") },
      get("/50%"),
      get(`/${"long".repeat(3000)}`),
      get("/beds/%zz:water"),
      { httpMethod: "OPTIONS", path: "*", header: [] },
    ];

    test.each(others)("for $httpMethod $path reaches the fallback unchanged, and skips admit", async (request) => {
      let asked = false;
      const handler = mount({ fallback: application, limits: { urlBytes: 8192 }, admit: () => void (asked = true) });
      await using server = await serve(version, handler);
      const answer = await exchange(server.address, version, request);
      expect(String(answer.body)).toBe(`${request.httpMethod} ${request.path} ${String(request.body ?? "")}`);
      expect([fieldValue(answer.header, "x-app"), asked]).toEqual(["yes", false]);
    });

    test.each<[name: string, fallback: NonNullable<GatewayOptions["fallback"]>]>([
      ["that calls write() and end()", writeMoss],
      ["that calls writeHead() and end()", (_, response) => response.writeHead(200, { "x-app": "yes" }).end("moss")],
      ["typed for node:http", (_: IncomingMessage, response: ServerResponse) => response.writeHead(200).end("moss")],
      [
        "typed for node:http2",
        (_: Http2ServerRequest, response: Http2ServerResponse) => response.writeHead(200).end("moss"),
      ],
    ])("gets the response of a fallback %s", async (_name, fallback) => {
      await using server = await serve(version, mount({ fallback }));
      expect(String((await exchange(server.address, version, get("/"))).body)).toBe("moss");
    });

    test("is passed to next() instead of the fallback", async () => {
      const handler = mount({ fallback: throws(new Error("not to be called")) });
      await using server = await serve(version, (request, response) => {
        handler(request, response, (error) => {
          expect(error).toBeUndefined();
          application(request, response);
        });
      });
      expect(String((await exchange(server.address, version, get("/x"))).body)).toBe("GET /x ");
    });

    test("gets 404 if there is neither a fallback nor next()", async () => {
      await using server = await serve(version, mount());
      expect((await exchange(server.address, version, get("/x"))).httpStatus).toBe(404);
    });

    test("is refused by the gateway if its path matches a route", async () => {
      await using server = await serve(version, mount({ fallback: application, limits: { urlBytes: 8192 } }));
      const wrongMethod = { ...get(waterBedProcedure), httpMethod: "PUT" };
      expect((await exchange(server.address, version, wrongMethod)).httpStatus).toBe(405);
      const wrongType: HttpRequest = { ...water, path: waterBedProcedure, header: [["content-type", "text/plain"]] };
      expect((await exchange(server.address, version, wrongType)).httpStatus).toBe(415);
      const tooLong = { ...water, path: `${waterBedProcedure}?${"long".repeat(3000)}` };
      expect((await exchange(server.address, version, tooLong)).httpStatus).toBe(414);
    });
  });

  test("serves paths with its prefix, and passes on other paths", async () => {
    await using server = await serve(version, mount({ requestPathPrefix: "/api", fallback: application }));
    const { httpStatus } = await exchange(server.address, version, { ...water, path: "/api/beds/7:water" });
    expect(httpStatus).toBe(200);
    for (const path of ["/beds/7:water", "/apibeds/7:water", "/api"])
      expect(fieldValue((await exchange(server.address, version, { ...water, path })).header, "x-app")).toBe("yes");
  });

  test("a handler after a body parser passes an error about the consumed body to next(), and skips admit", async () => {
    let admitted = 0;
    const handler = mount({ admit: () => void (admitted += 1) });
    await using server = await serve(version, (request, response) => {
      void text(request).then(() => handler(request, response, (error) => response.end(String(error))));
    });
    const answer = await exchange(server.address, version, water);
    expect(String(answer.body)).toMatch(/^Error: the request body was read before the gateway got it/);
    expect(admitted).toBe(0);
  });

  test.each([
    { kind: "unary", path: water.path, type: json, body: '{"note":"n"}', want: '{"bed":"7","note":"n nobody"}' },
    { kind: "streamed", path: "/readings", type: ndjson, body: '{"sensor":"a"}', want: '{"count":1}' },
  ])("reads the $kind body of a paused request", async ({ path, type, body, want }) => {
    const handler = mount();
    await using server = await serve(version, (request, response) => {
      request.pause();
      // In a later turn, because a stream that is paused and resumed in the same turn does not stop.
      setImmediate(() => handler(request, response));
    });
    const request: HttpRequest = { ...water, path, body: Buffer.from(body), header: [type] };
    expect(String((await within(exchange(server.address, version, request), "a response")).body)).toBe(want);
  });

  test("applies backpressure while the RPC handler has read only one message", async () => {
    const stopped = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const gateway = createGreenhouse({}, go.promise);
    await using server = await serve(version, (request, response) => {
      ("stream" in request ? request.stream : request).once("pause", () => stopped.resolve());
      gateway.handler(request, response);
    });
    using upload = await openUpload({ ...server, gateway }, version, ["POST", "/readings"], [ndjson]);
    const line = `{"sensor":"${"x".repeat(64 * 1024)}"}\n`;
    for (let sent = 0; sent < 16; sent += 1) upload.write(line);
    upload.end();
    await within(stopped.promise, "a stop");
    go.resolve();
    expect(String((await upload.readResponse()).body)).toBe('{"count":16}');
  });

  test("refuses an invalid HTTP request that matches its routes", async () => {
    await using server = await serve(version, mount());
    const authority: Field = version === "1.1" ? ["host", "x:port"] : [":authority", "x:port"];
    expect((await exchange(server.address, version, { ...water, header: [authority, json] })).httpStatus).toBe(400);
  });
});

test.each<{ how: string; disconnect: (socket: Socket) => unknown }>([
  { how: "closed", disconnect: (socket) => socket.destroy() },
  { how: "reset", disconnect: (socket) => socket.resetAndDestroy() },
])("the handler serves no request whose connection was $how before", async ({ disconnect }) => {
  let requests = 0;
  const handler = mount({ onRequest: () => (requests += 1) });
  const arrived = Promise.withResolvers<void>();
  const handled = Promise.withResolvers<void>();
  await using server = await serve("1.1", (request, response) => {
    request.socket.once("close", () => handled.resolve(handler(request, response)));
    arrived.resolve();
  });
  using connection = await openHttp1(server.address);
  connection.request(get("/sensors/s/reading"));
  await within(arrived.promise, "the request");
  disconnect(connection.socket);
  await within(handled.promise, "the call of the handler");
  expect(requests).toBe(0);
});

test("the handler does not change a response that the application already started", async () => {
  const called = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<void>();
  const faults: unknown[] = [];
  const handler = mount({
    onFault: (fault) => void faults.push(fault),
    onResponse: () => reported.resolve(),
    admit: async () => (called.resolve(), await begun.promise),
  });
  await using server = await serve("1.1", (request, response) => {
    handler(request, response);
    void called.promise.then(async () => {
      if (!("stream" in response)) response.writeHead(503);
      begun.resolve();
      await reported.promise;
      response.end("too late");
    });
  });
  const answer = await exchange(server.address, "1.1", water);
  expect([answer.httpStatus, String(answer.body), faults]).toEqual([503, "too late", []]);
});

describe.each(["1.1", "2"] as const)("the handler in an application on HTTP/%s", (version) => {
  async function ask(hostFields: Readonly<Record<string, string | string[]>>): Promise<readonly Field[]> {
    const handler = mount({
      routes: (router) =>
        router.service(GreenhouseService, {
          getReading: (_, { responseHeader }) => {
            responseHeader.set("x-both", "gateway");
            responseHeader.set("vary", "x-tenant");
            responseHeader.append("set-cookie", "gateway=1");
            return {};
          },
        }),
    });
    await using server = await serve(version, (request, response) => {
      for (const [name, value] of Object.entries(hostFields)) response.setHeader(name, value);
      handler(request, response);
    });
    const { httpStatus, header } = await exchange(server.address, version, get("/sensors/palm/reading"));
    expect(httpStatus).toBe(200);
    return header;
  }

  test.each(
    // oxfmt-ignore
    [
      ["sends a field that only the application sets", { "x-host": "1" }, "x-host", ["1"]],
      ["sends each value of a header that the application sets to an array", { link: ["</a>", "</b>"] }, "link",
        ["</a>", "</b>"]],
      ["replaces the application's field with the gateway's", { "x-both": "host" }, "x-both", ["gateway"]],
      ["joins the Vary fields of the application and the gateway", { Vary: "origin" }, "vary", ["origin", "x-tenant"]],
      ["sends the cookies of the application and the gateway", { "set-cookie": ["a=1", "b=2"] }, "set-cookie",
        ["a=1", "b=2", "gateway=1"]],
      ["replaces the content type of the application's page", { "content-type": "text/html" }, "content-type",
        ["application/json"]],
      ["replaces the content length of the application's page", { "content-length": "5" }, "content-length", ["2"]],
      ["removes the content coding of the application's page", { "content-encoding": "br" }, "content-encoding", []],
      ["removes the ETag of the application's page", { etag: '"page"' }, "etag", []],
    ],
  )("%s", async (_title, host, name, values) => {
    expect((await ask(host)).filter(([field]) => field === name).map(([, value]) => value)).toEqual(values);
  });
});

test("the handler keeps the application's header fields in an error response", async () => {
  const handler = mount();
  await using server = await serve("1.1", (request, response) => {
    response.setHeader("access-control-allow-origin", "https://shop.example");
    handler(request, response);
  });
  const answer = await exchange(server.address, "1.1", { ...water, header: [["content-type", "text/plain"]] });
  expect(answer.httpStatus).toBe(415);
  expect(fieldValue(answer.header, "access-control-allow-origin")).toBe("https://shop.example");
});

test("the HTTP/2 handler resets an incomplete request after the response", async () => {
  let taken = 0;
  const handler = mount();
  await using server = await serve("2", (request, response) => {
    if ("stream" in request)
      request.stream.prependListener("data", (piece: Buffer) => void (taken += piece.byteLength));
    handler(request, response);
  });
  const session = connectHttp2(`http://127.0.0.1:${server.address.port}`);
  const stream = session.request({ ":method": "POST", ":path": waterBedProcedure, "content-type": "text/plain" });
  const closed = once(stream.resume(), "close");
  const send = (): void => void (stream.closed || stream.write(Buffer.alloc(64 * 1024), send));
  send();
  await within(closed, "a reset");
  expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  expect(taken).toBeLessThan(2 ** 20);
  session.destroy();
});

test("the handler does not change the application's trailers", async () => {
  await using server = await serve("2", mount({ fallback: trailing }));
  expect(fieldValue((await exchange(server.address, "2", get("/"))).trailer, "x-app-trailer")).toBe("yes");
});

test("the handler serves HTTP/2 and HTTP/1.1 in one server over TLS", async () => {
  const certificate = createCertificate("localhost");
  const server = createSecureServer({ ...certificate, allowHTTP1: true }, mount());
  const { hostname: host, port } = new URL(await listenOnLoopback(server));
  const tls = { host, port: Number(port), ca: certificate.cert, servername: "localhost" };
  using http2 = await openHttp2({ address: host, port: Number(port) }, tls);
  expect(JSON.parse(String((await http2.exchange(water)).body))).toMatchObject({ note: "n nobody" });
  const socket = connectTls({ ...tls, ALPNProtocols: ["http/1.1"] });
  using http1 = overHttp1(socket, createByteReader(socket), "localhost");
  http1.request(water);
  expect(JSON.parse(String((await http1.readResponse()).body))).toMatchObject({ note: "n nobody" });
  server.close();
});

test.each([
  { name: "an RPC", httpMethod: "POST", path: getReadingProcedure, want: true },
  { name: "an RPC with another method", httpMethod: "DELETE", path: getReadingProcedure, want: true },
  { name: "a REST route", httpMethod: "GET", path: "/sensors/palm/reading?x=1", want: true },
  { name: "a path variable that is not UTF-8", httpMethod: "GET", path: "/sensors/%ff/reading", want: false },
  { name: "a route with an encoded literal", httpMethod: "GET", path: "/%73ensors/palm/reading", want: false },
  { name: "an unknown path", httpMethod: "GET", path: "/page", want: false },
  { name: "all resources", httpMethod: "OPTIONS", path: "*", want: false },
])("matches returns $want for $name, as the handler behaves", async ({ httpMethod, path, want }) => {
  const gateway = createGateway({ routes: (router) => void router.service(GreenhouseService, {}) });
  const seen: boolean[] = [];
  const server = createHttp1((request, response) => {
    seen.push(gateway.matches(request));
    gateway.handler(request, response, () => {
      response.setHeader("x-app", "yes");
      response.end();
    });
  });
  await using started = await startOnLoopback(server);
  const { header } = await exchange(started.address, "1.1", { httpMethod, path, header: [], body: Buffer.of() });
  expect([seen, header.some(([field]) => field.toLowerCase() === "x-app")]).toEqual([[want], !want]);
});
