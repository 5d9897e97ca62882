import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { describe, expect, test, vi } from "vitest";
import { startDeadline } from "../../src/http/exchange/index.ts";
// oxfmt-ignore
import { type EndpointResponse, errorCodeOf, type Gateway, type GatewayLoad, type ListenOptions
} from "../../src/index.ts";
// oxfmt-ignore
import { type Address, createByteReader, createCertificate, createTempFolder, createTestGateway, exchange, type Field,
  type HttpRequest, openFrames, openGreenhouse, openHttp1, openHttp2, overHttp1, startGreenhouse, within
} from "@protoport/testing";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { begun, whole } from "../../../testing/src/http2/http2-requests.ts";

const json: Field = ["content-type", "application/json"];
/** More than the kernel buffers for a client that does not read. */
const bigBody = Buffer.alloc(16 * 1024 * 1024, "orders");

test("a connection over TLS accepts a request split across TLS records during the previous response", async () => {
  const certificate = createCertificate("localhost");
  const gateway = createTestGateway({
    routes: (router) => router.service(OrderService, { deleteOrder: () => ({}) }),
    endpoints: [{ path: "/big", open: true, handle: () => ({ httpStatus: 200, body: bigBody }) }],
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0, tls: certificate });
  const records = new RecordGatherer(connectTcp({ host: "127.0.0.1", port, noDelay: true }));
  const socket = connectTls({ socket: records, ca: certificate.cert, servername: "localhost" });
  await within(once(socket, "secureConnect"), "the handshake");
  socket.write("GET /big HTTP/1.1\r\nhost: x\r\n\r\n");
  // The client has the response's first bytes and stops reading, so most of the response is still unsent.
  await within(once(socket, "readable"), "the first bytes of the answer");
  records.hold();
  const contentFields = "content-type: application/json\r\ncontent-length: 2";
  socket.write(`POST /orders.v1.OrderService/DeleteOrder HTTP/1.1\r\nhost: x\r\n${contentFields}\r\n\r\n`);
  socket.write("{}");
  await records.release(2);
  const connection = overHttp1(socket, createByteReader(socket), "x");
  expect((await connection.readResponse()).body.equals(bigBody)).toBe(true);
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, body: Buffer.from("{}") });
  socket.destroy();
  await gateway.close();
});

describe.each([2 ** 31, Infinity])("a header timeout of %d ms", (headerTimeoutMs) => {
  const certificate = createCertificate("localhost");
  test.each([
    { name: "cleartext", tls: undefined },
    { name: "TLS", tls: certificate },
  ])("does not close a $name connection early", async ({ tls }) => {
    const gateway = createTestGateway({ routes: () => {}, limits: { headerTimeoutMs } });
    const { port } = await gateway.listen({ host: "127.0.0.1", port: 0, ...(tls && { tls }) });
    const outer = connectTcp({ host: "127.0.0.1", port });
    await within(once(outer, "connect"), "the connection");
    // Longer than 1 ms, because a timer that overflows fires after 1 ms.
    await within(new Promise<void>((resolve) => startDeadline(20, resolve)), "20 ms");
    const socket = tls === undefined ? outer : connectTls({ socket: outer, ca: tls.cert, servername: "localhost" });
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(await overHttp1(socket, createByteReader(socket), "x").readResponse()).toMatchObject({ httpStatus: 404 });
    socket.destroy();
    await gateway.close();
  });
});

/** A socket under TLS that can hold records back and then send them in one segment. */
class RecordGatherer extends Duplex {
  readonly #socket: Socket;
  #held: Buffer[] | undefined;
  #counted: (() => void) | undefined;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on("data", (bytes) => {
      if (!this.push(bytes)) socket.pause();
    });
    socket.on("end", () => this.push(null)).on("error", () => this.destroy());
  }

  hold(): void {
    this.#held = [];
  }

  /** Sends the held bytes once TLS has made this many writes. */
  async release(records: number): Promise<void> {
    const enough = async (): Promise<void> => {
      while ((this.#held?.length ?? 0) < records)
        await new Promise<void>((resolve) => {
          this.#counted = resolve;
        });
    };
    await within(enough(), `${String(records)} records`);
    this.#socket.write(Buffer.concat(this.#held ?? []));
    this.#held = undefined;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#held === undefined) {
      this.#socket.write(bytes, done);
      return;
    }
    this.#held.push(bytes);
    this.#counted?.();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

describe("the load of a gateway", () => {
  test.each([
    { version: "1.1", transport: "http1" },
    { version: "2", transport: "http2" },
  ] as const)("counts a connection and request over HTTP/$version until the response ends", async (row) => {
    const requested = Promise.withResolvers<void>();
    const page = Promise.withResolvers<EndpointResponse>();
    const answer = async (): Promise<EndpointResponse> => (requested.resolve(), await page.promise);
    const gateway = createTestGateway({ routes: () => {}, endpoints: [{ path: "/page", open: true, handle: answer }] });
    expect(gateway.load).toEqual(loadOf(row.transport, 0));
    const answered = exchange(await gateway.listen(), row.version, { httpMethod: "GET", path: "/page", header: [] });
    await within(requested.promise, "the request");
    expect(gateway.load).toEqual(loadOf(row.transport, 1));
    page.resolve({ httpStatus: 200, body: "" });
    await answered;
    await expect.poll(() => gateway.load).toEqual(loadOf(row.transport, 0));
    await gateway.close();
  });
});

test("the load of a gateway counts refused requests and HTTP/2 errors", async () => {
  const gateway = createTestGateway({ routes: () => {} });
  const address = await gateway.listen({});
  for (const _ of [1, 2]) {
    await exchange(address, "1.1", { httpMethod: "GET", path: "/%zz", header: [["host", "x:port"]] });
    using connection = await openFrames(address);
    connection.send(begun(1, ["te", "wonders"]), whole(2));
    await connection.readUntil(() => false);
  }
  const { badRequests, http2Errors } = gateway.load;
  const errors = new Map([["PROTOCOL_ERROR", 2]]);
  expect([badRequests, http2Errors]).toEqual([new Map([[400, 2]]), { stream: errors, connection: errors }]);
  await gateway.close();
});

function loadOf(transport: "http1" | "http2", count: number): GatewayLoad {
  const counts = { http1: 0, http2: 0, [transport]: count };
  const http2Errors = { connection: new Map(), stream: new Map() };
  return { connections: counts, requests: counts, backlogBytes: 0, badRequests: new Map(), http2Errors };
}

async function askForRoot(socket: Socket): Promise<string> {
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  return String((await overHttp1(socket, createByteReader(socket), "x").readResponse()).body);
}

test("a cleartext connection does not inherit an earlier TLS connection's peer address", async () => {
  const certificate = createCertificate("localhost");
  const gateway = createTestGateway({
    routes: () => {},
    trustedProxies: { addresses: ["127.0.0.0/8"], fields: "none" },
    endpoints: [{ path: "/", open: true, handle: ({ peer }) => ({ httpStatus: 200, body: peer.address }) }],
  });
  const address = await gateway.listen({ port: 0, tls: certificate, allowCleartext: true, proxyProtocol: true });
  const open = async (localPort: number): Promise<Socket> => {
    const socket = connectTcp({ host: "127.0.0.1", port: address.port, localAddress: "127.0.0.7", localPort });
    await within(once(socket, "connect"), "a connection");
    return socket;
  };
  const outer = await open(0);
  const { localPort = 0 } = outer;
  outer.write("PROXY TCP4 192.0.2.7 192.0.2.9 47 443\r\n");
  const inner = connectTls({ socket: outer, ca: certificate.cert, servername: "localhost" });
  expect(await askForRoot(inner)).toBe("192.0.2.7");
  // After a reset the port is free immediately.
  outer.resetAndDestroy();
  await expect.poll(() => gateway.load.connections.http1).toBe(0);
  const later = await open(localPort);
  later.write("PROXY UNKNOWN\r\n");
  expect(await askForRoot(later)).toBe("127.0.0.7");
  later.destroy();
  await gateway.close();
});

test("a failed listen() does not enable PROXY headers for the next one", async () => {
  const blocker = createTestGateway({ routes: () => {} });
  const { port } = await blocker.listen();
  const gateway = createTestGateway({ routes: () => {}, trustedProxies: { addresses: ["127.0.0.1"] } });
  await expect(gateway.listen({ port, proxyProtocol: true })).rejects.toThrow("EADDRINUSE");
  const address = await gateway.listen();
  expect((await fetch(`http://127.0.0.1:${address.port}/`)).status).toBe(404);
  await Promise.all([gateway.close(), blocker.close()]);
});

test("listen() can be called again only after an error", async () => {
  await using greenhouse = await startGreenhouse({});
  const second = createTestGateway({ routes: () => {} });
  const { port } = greenhouse.address;
  await expect(second.listen({ port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  const listening = second.listen();
  await expect(second.listen()).rejects.toThrow("already listening");
  await listening;
  await expect(second.listen()).rejects.toThrow("already listening");
  await second.close();
});

test("drain() closes the socket if listen() is still pending", async () => {
  using folder = createTempFolder();
  const path = join(folder.path, "socket");
  const gateway = createTestGateway({ routes: () => {} });
  const listening = gateway.listen({ path });
  const drained = gateway.drain(0);
  await expect(listening).rejects.toThrow("was drained and cannot listen again");
  await drained;
  expect(existsSync(path)).toBe(false);
  await expect(gateway.listen({ path })).rejects.toThrow("was drained and cannot listen again");
  expect(existsSync(path)).toBe(false);
});

test("drain() resolves immediately if no connection is open", async () => {
  const gateway = createTestGateway({ routes: () => {} });
  await gateway.listen();
  using timers = vi.spyOn(globalThis, "setTimeout");
  await gateway.drain(60_000);
  expect(timers).not.toHaveBeenCalled();
});

test.each([
  { name: "a shorter timeout resolves earlier", timesMs: [600_000, 0] },
  { name: "a longer timeout does not resolve later", timesMs: [20, 600_000] },
])("a second drain() with $name", async ({ timesMs: [first = 0, second = 0] }) => {
  const started = Promise.withResolvers<void>();
  const stuck = async (): Promise<never> => (started.resolve(), await new Promise(() => {}));
  await using connection = await openGreenhouse(openHttp1, { waterBed: stuck });
  connection.request({ httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.from("{}") });
  await within(started.promise, "the call");
  const drained = connection.greenhouse.gateway.drain(first);
  void connection.greenhouse.gateway.drain(second);
  await within(drained, "the end of the drain");
});

/** Sends a request on a connection, and returns the connection. */
type OpenCall = (address: Address, request: HttpRequest) => Promise<Disposable>;
const certificate = createCertificate("localhost");

describe.each<{ version: string; listen: ListenOptions; openCall: OpenCall }>([
  { version: "HTTP/1.1", listen: {}, openCall: openHttp1Call },
  {
    version: "HTTP/1.1 with TLS",
    listen: { tls: certificate },
    openCall: (...call) => openHttp1Call(...call, { ca: certificate.cert, servername: "localhost" }),
  },
  {
    version: "HTTP/2",
    listen: {},
    openCall: async (address, request) => {
      const connection = await openHttp2(address);
      connection.exchange(request).catch(() => {});
      return connection;
    },
  },
])("a call over $version", ({ listen, openCall }) => {
  test.each<{ name: string; stop: (gateway: Gateway, client: Disposable) => Promise<void>; want: string }>([
    { name: "at the timeout of drain()", stop: (gateway) => gateway.drain(20), want: "ERR_SERVER_STOPPING" },
    { name: "at close()", stop: (gateway) => gateway.close(), want: "ERR_SERVER_STOPPING" },
    {
      name: "when its client disconnects during drain()",
      stop: (gateway, client) => {
        const drained = gateway.drain(600_000);
        client[Symbol.dispose]();
        return drained;
      },
      want: "ERR_CLIENT_GONE",
    },
  ])("ends $name with $want", async ({ stop, want }) => {
    const started = Promise.withResolvers<void>();
    const waterBed = (): Promise<never> => {
      started.resolve();
      return new Promise(() => {});
    };
    await using greenhouse = await startGreenhouse({ waterBed }, {}, listen);
    const request = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.from("{}") };
    using client = await openCall(greenhouse.address, request);
    await within(started.promise, "the call");
    await within(stop(greenhouse.gateway, client), "the end of the drain");
    const [{ error } = {}] = greenhouse.completedRequests;
    expect(error && errorCodeOf(error)).toBe(want);
  });
});

async function openHttp1Call(address: Address, request: HttpRequest, tls?: ConnectionOptions): Promise<Disposable> {
  const connection = await openHttp1(address, tls);
  connection.request(request);
  return connection;
}
