import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";
import type { ListenOptions } from "../../src/index.ts";
// oxfmt-ignore
import { type Address, createByteReader, createCertificate, createTempFolder, createTestGateway, openFrames, openHttp1,
  openHttp2, openSocket, overHttp1, within } from "@protoport/testing";
import { whole } from "../../../testing/src/http2/http2-requests.ts";

/** How many connections are served beyond the limit. */
const maxSpare = 64;
const get = { httpMethod: "GET", path: "/livez", header: [] } as const;
const getSlow = { ...get, path: "/slow" } as const;
const response = { httpStatus: 200, body: "" };

/** A gateway that begins to respond to `/slow` whenever requested, and completes the response when released. */
async function startGateway(connections: number, options: ListenOptions = { host: "127.0.0.1" }) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  const answerSlowly = async () => (begun++, await released.then(() => response));
  const gateway = createTestGateway({
    routes: () => {},
    limits: { connections },
    endpoints: [
      { path: get.path, open: true, handle: () => response },
      { path: getSlow.path, open: true, handle: answerSlowly },
    ],
  });
  const address = await gateway.listen(options);
  const hasBegun = (requests: number) => expect.poll(() => begun, { interval: 1 }).toBe(requests);
  return { address, release, hasBegun, [Symbol.asyncDispose]: () => gateway.close() };
}

/** A connection that has had a response. */
async function openAnswered(address: Address) {
  const connection = await openHttp1(address);
  connection.request(get);
  expect((await connection.readResponse()).httpStatus).toBe(200);
  return connection;
}

test("a new connection evicts the oldest connection beyond the limit", async () => {
  await using gateway = await startGateway(2);
  using stack = new DisposableStack();
  const open = async () => stack.use(await openAnswered(gateway.address));
  const [first, second] = [await open(), await open()];
  const oldest = await open();
  const next = stack.use(await openFrames(gateway.address));
  next.send(whole(1));
  expect(await next.readEnd(1)).toMatchObject({ kind: "responded" });
  for (let i = 2; i < maxSpare; i++) await open();
  await open();
  expect(await oldest.atEnd()).toBe(true);
  await open();
  expect(await next.readUntil(() => false)).toBe(undefined);
  // Connections within the limit stay open however many follow.
  for (const kept of [first, second]) {
    kept.request(get);
    expect((await kept.readResponse()).httpStatus).toBe(200);
  }
});

test("a closed connection is replaced by the oldest one beyond the limit", async () => {
  await using gateway = await startGateway(1);
  using stack = new DisposableStack();
  const open = async () => stack.use(await openAnswered(gateway.address));
  const first = await open();
  const heir = await open();
  first.socket.end();
  expect(await first.atEnd()).toBe(true);
  const [oldest] = [await open(), ...(await Promise.all(Array.from({ length: maxSpare }, open)))];
  expect(await oldest.atEnd()).toBe(true);
  heir.request(get);
  expect((await heir.readResponse()).httpStatus).toBe(200);
});

test("a closed connection beyond the limit makes room for another connection", async () => {
  await using gateway = await startGateway(1);
  using stack = new DisposableStack();
  const open = async () => stack.use(await openAnswered(gateway.address));
  await open();
  const oldest = await open();
  const [next] = await Promise.all(Array.from({ length: maxSpare - 1 }, open));
  next?.socket.end();
  expect(await next?.atEnd()).toBe(true);
  await open();
  oldest.request(get);
  expect((await oldest.readResponse()).httpStatus).toBe(200);
  await open();
  expect(await oldest.atEnd()).toBe(true);
});

describe("a connection beyond the limit", () => {
  const certificate = createCertificate("spare");
  const inTls = { ca: certificate.cert, servername: "localhost" };
  const tls = { host: "127.0.0.1", tls: certificate };

  const askHttp1 = async (address: Address) => {
    using connection = await openHttp1(address);
    connection.request(getSlow);
    return await connection.readResponse();
  };
  const askHttp1InTls = async (address: Address) => {
    const socket = connectTls({ ...inTls, socket: openSocket(address) });
    using connection = overHttp1(socket, createByteReader(socket), "localhost");
    await within(once(socket, "secureConnect"), "the handshake");
    connection.request(getSlow);
    return await connection.readResponse();
  };
  const askHttp2 = async (address: Address, options?: typeof inTls) => {
    using connection = await openHttp2(address, options);
    return await connection.exchange(getSlow);
  };
  const askHttp2InTls = (address: Address) => askHttp2(address, inTls);

  test.each<{ name: string; options: ListenOptions; ask: (address: Address) => Promise<{ httpStatus: number }> }>([
    { name: "HTTP/1.1", options: {}, ask: askHttp1 },
    { name: "HTTP/1.1 and TLS", options: tls, ask: askHttp1InTls },
    { name: "HTTP/2", options: {}, ask: (address) => askHttp2(address) },
    { name: "HTTP/2 and TLS", options: tls, ask: askHttp2InTls },
  ])("with a request over $name is kept until the response", ({ options, ask }) => survives(options, ask));

  test("is kept until the response over TLS on a Unix socket", async () => {
    using folder = createTempFolder();
    await survives({ path: folder.file("s"), tls: certificate }, askHttp1InTls);
  });

  async function survives(options: ListenOptions, ask: (address: Address) => Promise<{ httpStatus: number }>) {
    await using gateway = await startGateway(1, options);
    using stack = new DisposableStack();
    const open = async () => stack.use(await openHttp1(gateway.address));
    await open();
    const pending = ask(gateway.address);
    await gateway.hasBegun(1);
    const idle = await open();
    for (let i = 1; i < maxSpare; i++) await open();
    expect(await idle.atEnd()).toBe(true);
    gateway.release();
    expect((await pending).httpStatus).toBe(200);
  }

  test("is closed if all other connections beyond the limit have requests", async () => {
    await using gateway = await startGateway(1);
    using stack = new DisposableStack();
    stack.use(await openHttp1(gateway.address));
    const pending = Array.from({ length: maxSpare }, () => askHttp1(gateway.address));
    await gateway.hasBegun(maxSpare);
    expect(await stack.use(await openHttp1(gateway.address)).atEnd()).toBe(true);
    gateway.release();
    for (const { httpStatus } of await Promise.all(pending)) expect(httpStatus).toBe(200);
  });
});
