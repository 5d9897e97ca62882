import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Admit, Endpoint } from "../../../../../src/index.ts";
// oxfmt-ignore
import { acceptedSocket, createCertificate, leastOf, openHttp1, retainedBytes, startGreenhouse
} from "@protoport/testing";

// Measures memory for connections whose clients send requests ahead and do not read responses.

/** The shortest request, so that one socket read contains thousands. */
const shortest = "GET / HTTP/1.1\r\nHost:x\r\n\r\n";

test("all connections together buffer no more than the limit", async () => {
  const backlogBytes = 16 * 1024 * 1024;
  const pageBytes = 6 * 1024 * 1024;
  const maxBufferedBytes = 1.5 * backlogBytes;
  const maxRetainedBytes = 1024 * 1024;
  // Sockets are not counted, because a closed socket still holds the bytes that were written to it.
  let accepted = 0;
  let closed = 0;
  const admit: Admit = () => {
    accepted += 1;
    acceptedSocket().once("close", () => (closed += 1));
  };
  const body = Buffer.alloc(pageBytes, "orders");
  const page: Endpoint = { path: "/", open: false, handle: () => ({ httpStatus: 200, body }) };
  await using greenhouse = await startGreenhouse(
    {},
    { limits: { backlogBytes }, admit, endpoints: [page], onResponse: () => {} },
  );
  // The lowest values in all runs.
  let [buffered, retained] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  /** Measures both, and returns the value that is closer to its bound, as a share of the bound. */
  const measure = async (): Promise<number> => {
    const beforeBytes = await retainedBytes();
    const connections = await Promise.all(Array.from({ length: 8 }, () => openHttp1(greenhouse.address)));
    for (const connection of connections) {
      connection.socket.pause();
      connection.write(shortest);
    }
    await expect.poll(() => accepted === 8 && closed, { interval: 50 }).toBeGreaterThan(3);
    expect(closed).toBeLessThan(8);
    const busyBytes = await retainedBytes();
    for (const connection of connections) connection[Symbol.dispose]();
    await expect.poll(() => closed).toBe(8);
    accepted = closed = 0;
    buffered = Math.min(buffered, busyBytes - beforeBytes);
    retained = Math.min(retained, (await retainedBytes()) - beforeBytes);
    return Math.max(buffered / maxBufferedBytes, retained / maxRetainedBytes);
  };
  await leastOf(measure, 1);
  expect(buffered).toBeLessThan(maxBufferedBytes);
  expect(retained).toBeLessThan(maxRetainedBytes);
});

const refuseAtLength: Admit = () => {
  throw new ConnectError("who are you? ".repeat(1000), Code.Unauthenticated);
};

test("a connection buffers at most 512 KiB of requests and unread responses", async () => {
  const connectionCount = 8;
  const maxAheadBytes = 512 * 1024;
  const ahead = Buffer.from(shortest.repeat(20_000));
  await using greenhouse = await startGreenhouse({}, { admit: refuseAtLength, onResponse: () => {} });
  const crowd = async (): Promise<number> => {
    const beforeBytes = await retainedBytes();
    const connections = await Promise.all(Array.from({ length: connectionCount }, () => openHttp1(greenhouse.address)));
    for (const connection of connections) {
      connection.socket.pause();
      connection.write(ahead);
    }
    // Another connection gets its response after everything that was read from these connections.
    using other = await openHttp1(greenhouse.address);
    other.write(shortest);
    await other.readResponse();
    const crowdedBytes = await retainedBytes();
    for (const connection of connections) connection[Symbol.dispose]();
    return crowdedBytes - beforeBytes;
  };
  const most = connectionCount * maxAheadBytes;
  expect(await leastOf(crowd, most)).toBeLessThan(most);
});

test("pipelined requests are served only as fast as the client reads", async () => {
  const bytes = 100_000;
  const count = 300;
  const page: Endpoint = { path: "/", open: true, handle: () => ({ httpStatus: 200, body: Buffer.alloc(bytes) }) };
  await using greenhouse = await startGreenhouse({}, { endpoints: [page] });
  using connection = await openHttp1(greenhouse.address);
  connection.socket.pause();
  connection.write(shortest.repeat(count));
  await greenhouse.completed(1);
  // Another connection gets its response after everything that was read from the first one.
  using other = await openHttp1(greenhouse.address);
  other.request({ httpMethod: "GET", path: "/", header: [] });
  await other.readResponse();
  // The bytes that the kernel buffers, plus 1 MiB.
  expect(greenhouse.completedRequests.length * bytes).toBeLessThan(20_000_000);
  connection.socket.resume();
  for (let i = 0; i < count; i++) expect((await connection.readResponse()).body.byteLength).toBe(bytes);
});

const ask = (pageKib: number): string => `GET / HTTP/1.1\r\nhost: x\r\nx-kib: ${String(pageKib)}\r\n\r\n`;

describe("load.backlogBytes", () => {
  const kib = 1024;
  const certificate = createCertificate("localhost");
  const tls = { ca: certificate.cert, servername: "localhost" };
  // A connection's deadlines are checked four times in its shortest timeout.
  const limits = { headerTimeoutMs: 1000 };
  /** A page whose size in KiB is in a header field. */
  const page: Endpoint = {
    path: "/",
    open: true,
    handle: ({ header }) => ({ httpStatus: 200, body: Buffer.alloc(Number(header.get("x-kib")) * kib) }),
  };

  test.each([1, 4, 5, 20, 60, 63, 64, 65, 200, 1000])("is 0 after a response of %i KiB was read", async (pageKib) => {
    await using greenhouse = await startGreenhouse({}, { endpoints: [page], limits });
    using connection = await openHttp1(greenhouse.address);
    connection.write(ask(pageKib));
    expect((await connection.readResponse()).body.byteLength).toBe(pageKib * kib);
    await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBe(0);
  });

  test.each([60, 200, 5000])("is 0 after queued responses of %i KiB were read", async (pageKib) => {
    await using greenhouse = await startGreenhouse({}, { endpoints: [page], limits });
    using connection = await openHttp1(greenhouse.address);
    connection.socket.pause();
    let requests = 0;
    // Waits until the kernel's buffers are full.
    while (greenhouse.gateway.load.backlogBytes === 0) {
      connection.write(ask(pageKib));
      await greenhouse.completed(++requests);
    }
    connection.socket.resume();
    for (; requests > 0; requests--) expect((await connection.readResponse()).body.byteLength).toBe(pageKib * kib);
    await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBe(0);
  });

  test.each([
    { name: "", tls: undefined },
    { name: " over TLS", tls },
  ])("does not include responses$name that were read", async ({ tls: options }) => {
    const slow = Promise.withResolvers<void>();
    await using greenhouse = await startGreenhouse(
      { waterBed: async () => (await slow.promise, { note: "n" }) },
      // In the meantime, the deadlines of these connections are not checked.
      { endpoints: [page], limits: { backlogBytes: 256 * kib } },
      { ...(options && { tls: certificate }) },
    );
    const connections = await Promise.all(Array.from({ length: 30 }, () => openHttp1(greenhouse.address, options)));
    const header = [["content-type", "application/json"]] as const;
    const calling = connections[0] ?? expect.fail("no connection");
    for (const connection of connections) {
      connection.write(ask(60));
      expect((await connection.readResponse()).body.byteLength).toBe(60 * kib);
      if (connection === calling)
        calling.request({ httpMethod: "POST", path: "/beds/7:water", header, body: Buffer.from("{}") });
    }
    slow.resolve();
    expect((await calling.readResponse()).httpStatus).toBe(200);
    for (const connection of connections) {
      connection.write(ask(1));
      expect((await connection.readResponse()).httpStatus).toBe(200);
      connection[Symbol.dispose]();
    }
  });
});
