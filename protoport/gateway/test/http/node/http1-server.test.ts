import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { GatewayOptions } from "../../../src/index.ts";
import { nodeEngine } from "../../../src/http/node/index.ts";
import { type Field, fieldValue, type HttpRequest } from "../../../../testing/src/http/exchange.ts";
import { createCertificate } from "../../../../testing/src/http/certificate.ts";
import { openHttp1 } from "../../../../testing/src/http/http1-connection.ts";
import { startOnLoopback } from "../../../../testing/src/http/listen-on-loopback.ts";
import { within } from "../../../../testing/src/deadline.ts";
import { acceptedSocket } from "../../../../testing/src/gateway/greenhouse.ts";
import { failingHooks, startOnNode } from "../../../../testing/src/gateway/on-node.ts";

// Tests what a node:http server that does not listen lacks, and what it does before its handler is called.

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";
const call: HttpRequest = { httpMethod: "POST", path, header: [json], body: Buffer.from("{}") };
const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
const wholeCall = `${head}content-length: 2\r\n\r\n{}`;

const never = 60_000;

test("on node:http, slow readers are disconnected above the buffer limit", async () => {
  const note = "orders".repeat(1_000_000);
  await using greenhouse = await startOnNode(
    { waterBed: () => ({ note }) },
    { limits: { backlogBytes: 8_000_000, idleTimeoutMs: never } },
  );
  const connections = await Promise.all(Array.from({ length: 6 }, () => openHttp1(greenhouse.address)));
  for (const connection of connections) {
    connection.socket.pause();
    connection.write(wholeCall);
  }
  await greenhouse.completed(6);
  await expect.poll(() => greenhouse.gateway.load.connections.http1).toBeLessThan(4);
  expect(greenhouse.gateway.load.backlogBytes).toBeLessThanOrEqual(8_000_000);
  for (const connection of connections) connection[Symbol.dispose]();
});

function fieldLines(count: number): string {
  return Array.from({ length: count }, (_, at) => `x${String(at)}: y\r\n`).join("");
}

describe("node:http", () => {
  const credential = "x-key: k\r\n";
  const options: Partial<GatewayOptions> = {
    admit: ({ header }) => {
      if (header.get("x-key") !== "k") throw new ConnectError("no key", Code.Unauthenticated);
    },
    limits: { headerBytes: 2000, urlBytes: 100 },
  };

  test.each([
    { name: "bytes that are not HTTP", sent: "HELLO\r\n\r\n", httpStatus: 400, closes: true },
    { name: "CONNECT", sent: "CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n", httpStatus: 400, closes: true },
    {
      name: "CONNECT with a path",
      sent: "CONNECT /beds HTTP/1.1\r\nhost: x\r\n\r\n",
      httpStatus: 400,
      closes: true,
    },
    {
      name: "a header over every limit",
      sent: `${head}x: ${"y".repeat(3000)}\r\n\r\n`,
      httpStatus: 431,
      closes: true,
    },
    {
      name: "a missing Host field",
      sent: "GET /nothing HTTP/1.1\r\nx-key: k\r\n\r\n",
      httpStatus: 400,
      closes: false,
    },
    {
      name: "many small fields over the limit",
      sent: `GET / HTTP/1.1\r\nhost: x\r\n${fieldLines(60)}\r\n`,
      httpStatus: 431,
      closes: false,
    },
    {
      name: "a URL over the limit",
      sent: `GET /${"x".repeat(100)} HTTP/1.1\r\nhost: x\r\n\r\n`,
      httpStatus: 414,
      closes: false,
    },
    {
      name: "an unsupported expectation",
      sent: `${head}expect: the-moon\r\ncontent-length: 0\r\n\r\n`,
      httpStatus: 417,
      closes: false,
    },
    {
      name: "an RTSP request",
      sent: "GET /nothing RTSP/1.0\r\nx-key: k\r\nconnection: keep-alive\r\n\r\n",
      httpStatus: 400,
      closes: true,
    },
    {
      name: "a field name that begins like a long method",
      sent: `${head}${"M".repeat(40)} : x\r\n\r\n`,
      httpStatus: 400,
      closes: true,
    },
    {
      name: "an ICE request after an empty line",
      sent: "\r\nSOURCE /nothing ICE/1.0\r\nx-key: k\r\n\r\n",
      httpStatus: 400,
      closes: true,
    },
    {
      name: "an unknown transfer coding",
      sent: `${head}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      httpStatus: 501,
      closes: true,
    },
    { name: "a method of 100,000 characters", sent: "M".repeat(100_000), httpStatus: 501, closes: true },
    {
      name: "an upgrade request to an unknown path",
      sent: "GET /nothing HTTP/1.1\r\nhost: x\r\nx-key: k\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
      httpStatus: 404,
      closes: true,
    },
  ])("refuses $name with $httpStatus and an error record", async ({ sent, httpStatus, closes }) => {
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, options);
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(httpStatus);
    expect(JSON.parse(String(response.body))).toHaveProperty("code");
    expect(fieldValue(response.header, "connection") === "close").toBe(closes);
    if (closes) {
      expect(await connection.atEnd()).toBe(true);
      return;
    }
    connection.write(`${head}${credential}content-length: 2\r\n\r\n{}`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("counts the statuses of requests refused by the parser or the gateway", async () => {
    await using greenhouse = await startOnNode({}, options);
    for (const sent of [
      "HELLO\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      `GET /${"x".repeat(100)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    ]) {
      using connection = await openHttp1(greenhouse.address);
      connection.write(sent);
      await connection.readResponse();
    }
    expect([...greenhouse.gateway.load.badRequests]).toEqual([
      [400, 2],
      [414, 1],
    ]);
  });

  test.each([
    {
      name: "sends 100 Continue if the request is admitted",
      sent: `${head}x-key: k\r\n`,
      httpStatus: 200,
      interim: [100],
    },
    {
      name: "sends no 100 Continue if the request is refused",
      sent: `${head}x-key: ?\r\n`,
      httpStatus: 401,
      interim: [],
    },
    {
      name: "sends no 100 Continue if no route matches",
      sent: `${head.replace("/beds", "/nothing")}x-key: k\r\n`,
      httpStatus: 404,
      interim: [],
    },
  ])("$name", async ({ sent, httpStatus, interim }) => {
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, options);
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${sent}expect: 100-continue\r\ncontent-length: 2\r\n\r\n`);
    if (httpStatus === 200) connection.write("{}");
    expect(await connection.readResponse()).toMatchObject({ httpStatus, interim });
  });
});

test.each([
  { name: "an RTSP request", line: "OPTIONS /beds/7:water RTSP/1.0", httpStatus: 400 },
  { name: "an HTTP/1.0 request with RTSP in its URL", line: "GET /nothing?RTSP/1.0 HTTP/1.0", httpStatus: 404 },
])("$name gets $httpStatus on node:http over TLS", async ({ line, httpStatus }) => {
  const certificate = createCertificate("rtsp");
  await using greenhouse = await startOnNode({}, {}, { tls: certificate });
  using connection = await openHttp1(greenhouse.address, { ca: certificate.cert, servername: "localhost" });
  connection.write(`${line}\r\n\r\n`);
  expect(await connection.readResponse()).toMatchObject({ httpStatus });
  expect(await connection.atEnd()).toBe(true);
});

test("node:http keeps all 2,500 header fields of a request", async () => {
  let last: string | null = null;
  await using greenhouse = await startOnNode(
    { waterBed: () => ({}) },
    { limits: { headerBytes: 100_000 }, admit: ({ header }) => void (last = header.get("x-last")) },
  );
  using connection = await openHttp1(greenhouse.address);
  const many = Array.from({ length: 2500 }, (_, at): Field => [`a${String(at % 10)}`, "b"]);
  connection.request({ ...call, header: [json, ...many, ["x-last", "here"]] });
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  expect(last).toBe("here");
});

/** Calls that wait until they are released, with the beds that they requested. */
function heldCalls(): {
  readonly beds: bigint[];
  readonly implementation: Parameters<typeof startOnNode>[0];
  release(): void;
} {
  const { promise, resolve } = Promise.withResolvers<void>();
  const beds: bigint[] = [];
  const waterBed = async ({ bed }: { readonly bed: bigint }): Promise<{ bed: bigint }> => {
    beds.push(bed);
    await promise;
    return { bed };
  };
  return { beds, implementation: { waterBed }, release: () => resolve() };
}

function water(bed: number, fields = ""): string {
  return `POST /beds/${String(bed)}:water HTTP/1.1\r\nhost: x\r\n${fields}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
}

describe("pipelined requests on node:http", () => {
  test("are served and counted one at a time", async () => {
    const held = heldCalls();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1) + water(2) + water(3));
    await expect.poll(() => held.beds).toEqual([1n]);
    expect(greenhouse.gateway.load).toMatchObject({ connections: { http1: 1 }, requests: { http1: 1 } });
    await nextTurn();
    expect(held.beds).toEqual([1n]);
    held.release();
    for (const bed of ["1", "2", "3"]) {
      expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ bed });
    }
    await expect.poll(() => greenhouse.gateway.load.requests.http1).toBe(0);
  });

  test("do not inherit the AsyncLocalStorage of the previous handler", async () => {
    const storage = new AsyncLocalStorage<bigint>();
    const stores: unknown[] = [];
    const waterBed = async ({ bed }: { readonly bed: bigint }): Promise<object> => {
      stores.push(storage.getStore());
      storage.enterWith(bed);
      await nextTurn();
      return {};
    };
    await using greenhouse = await startOnNode({ waterBed });
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1) + water(2));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(stores).toEqual([undefined, undefined]);
  });

  test("are ignored after a request with connection: close", async () => {
    const held = heldCalls();
    held.release();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1, "connection: close\r\n") + water(2));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(await connection.atEnd()).toBe(true);
    expect(held.beds).toEqual([1n]);
    expect(greenhouse.gateway.load.badRequests).toEqual(new Map());
  });

  test("are all served even if reading pauses while many are queued", async () => {
    const held = heldCalls();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1));
    await expect.poll(() => held.beds).toEqual([1n]);
    const server = acceptedSocket();
    // More than one read of 64 KiB, which has over 64 requests.
    const rest = Array.from({ length: 199 }, (_, at) => water(at + 2, `x-long: ${"x".repeat(700)}\r\n`)).join("");
    connection.write(rest);
    await expect.poll(() => server.isPaused()).toBe(true);
    expect(server.bytesRead).toBeLessThan(rest.length);
    held.release();
    for (let bed = 1; bed <= 200; bed += 1) {
      expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ bed: String(bed) });
    }
  });

  test("close the connection when more than 2,048 wait for a response", async () => {
    const held = heldCalls();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1));
    await expect.poll(() => held.beds).toEqual([1n]);
    // The server reads up to 64 KiB before it can pause.
    connection.write("GET / HTTP/1.1\r\n\r\n".repeat(3000));
    expect(await connection.atEnd()).toBe(true);
    expect(held.beds).toEqual([1n]);
  });

  test("are all served during a drain before the connection closes", async () => {
    const held = heldCalls();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1) + water(2));
    await expect.poll(() => held.beds).toEqual([1n]);
    const drained = greenhouse.gateway.drain(never);
    held.release();
    expect(fieldValue((await connection.readResponse()).header, "connection")).not.toBe("close");
    expect(fieldValue((await connection.readResponse()).header, "connection")).toBe("close");
    expect(await connection.atEnd()).toBe(true);
    await within(drained, "the end of the drain");
  });

  test("before invalid HTTP get their responses during a drain", async () => {
    const held = heldCalls();
    await using greenhouse = await startOnNode(held.implementation);
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${water(1)}HELLO\r\n\r\n`);
    await expect.poll(() => held.beds).toEqual([1n]);
    const drained = greenhouse.gateway.drain(never);
    held.release();
    expect(fieldValue((await connection.readResponse()).header, "connection")).not.toBe("close");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
    expect(await connection.atEnd()).toBe(true);
    // The client has not closed its side, which does not delay the drain.
    expect(greenhouse.gateway.load).toMatchObject({ connections: { http1: 1 }, requests: { http1: 0 } });
    await within(drained, "the end of the drain");
  });

  test.each([
    { name: "invalid HTTP", sent: "HELLO\r\n\r\n", httpStatus: 400 },
    { name: "CONNECT", sent: "CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n", httpStatus: 400 },
    { name: "a header over the limit", sent: `GET / HTTP/1.1\r\nx: ${"y".repeat(30_000)}\r\n\r\n`, httpStatus: 431 },
    { name: "an invalid chunk", sent: `${head}transfer-encoding: chunked\r\n\r\ng\r\n`, httpStatus: 400 },
  ])("followed by $name get their responses before the error", async ({ sent, httpStatus }) => {
    const held = heldCalls();
    let admitted = 0;
    await using greenhouse = await startOnNode(held.implementation, { admit: () => void (admitted += 1) });
    using connection = await openHttp1(greenhouse.address);
    connection.write(water(1) + water(2) + sent);
    await expect.poll(() => held.beds).toEqual([1n]);
    held.release();
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    const last = await connection.readResponse();
    expect(last.httpStatus).toBe(httpStatus);
    expect(fieldValue(last.header, "connection")).toBe("close");
    expect(await connection.atEnd()).toBe(true);
    expect(held.beds).toEqual([1n, 2n]);
    expect(admitted).toBe(2);
  });
});

test("on node:http, an error outside a call is reported and closes the connection", async () => {
  const { options, reported } = failingHooks();
  const server = nodeEngine.createHttp1Server(options);
  await using started = await startOnLoopback(createServer((socket) => void server.take(socket)));
  using connection = await openHttp1(started.address);
  connection.write(wholeCall);
  expect(await within(reported, "the report")).toBe("ERR_CONNECTION_FAILED");
  expect(await connection.atEnd()).toBe(true);
  server.close();
});

test("node:http parses strictly when node runs with --insecure-http-parser", async () => {
  const program = `
    import { createServer } from "node:net";
    import { parentPort } from "node:worker_threads";
    import { BacklogBudget, defaultLimits } from "${import.meta.resolve("../../../src/http/exchange/index.ts")}";
    import { nodeEngine } from "${import.meta.resolve("../../../src/http/node/index.ts")}";
    const server = nodeEngine.createHttp1Server({
      limits: defaultLimits,
      budget: new BacklogBudget(defaultLimits.backlogBytes),
      serve: (exchange) => exchange.respond(200, []),
      refuse: (exchange, problem) => exchange.respond(problem.httpStatus, []),
    });
    const listening = createServer((socket) => void server.take(socket));
    listening.listen(0, "127.0.0.1", () => parentPort.postMessage(listening.address()));`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
    execArgv: ["--insecure-http-parser"],
  });
  const [address] = await within(once(worker, "message"), "the server");
  using connection = await openHttp1(address);
  connection.write("GET / HTTP/1.1\r\nhost: x\r\nx-control: \x01\r\n\r\n");
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
  await worker.terminate();
});
