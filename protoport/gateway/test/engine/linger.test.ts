import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Admit } from "../../src/index.ts";
// oxfmt-ignore
import { type Address, createCertificate, type Http1Connection, listenOnLoopback, nextEvent, openGreenhouse, openHttp1,
  startGreenhouse, type TestGreenhouse, waterBedProcedure, within } from "@protoport/testing";

const restPath = "/beds/7:water";

const needsKey: Admit = ({ header }) => {
  if (header.get("x-key") !== "k") throw new ConnectError("no key", Code.Unauthenticated);
};

/**
 * Sends a request from a client that reads the response only after it has sent everything, as python's http.client
 * does.
 */
async function sendAll(connection: Http1Connection, bytes: Uint8Array): Promise<void> {
  connection.socket.pause();
  await within(
    new Promise<void>((resolve, reject) => {
      connection.socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    }),
    "the server to take everything",
  );
  connection.socket.resume();
}

const requestBytes = (start: string, header: readonly string[], body: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([start, "host: x", ...header, "", ""].join("\r\n")), body]);

const body = Buffer.alloc(5 * 1024 * 1024, " ");
const chunks = Buffer.concat([Buffer.from(`${body.byteLength.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);

interface Row {
  readonly name: string;
  readonly start?: string;
  readonly header?: readonly string[];
  readonly body?: Uint8Array;
  readonly httpStatus: number;
}

const json = "content-type: application/json";
const announced = `content-length: ${String(body.byteLength)}`;
const close = "connection: close";
const inChunks = "transfer-encoding: chunked";

// oxfmt-ignore
const rows: readonly Row[] = [
  { name: "a body over the limit", httpStatus: 413 },
  { name: "a chunked body over the limit", header: [json, "x-key: k", inChunks], body: chunks, httpStatus: 413 },
  { name: "a missing credential", header: [json, announced], httpStatus: 401 },
  { name: "an unknown path", start: "POST /nothing HTTP/1.1", httpStatus: 404 },
  { name: "an unsupported method", start: `PUT ${restPath} HTTP/1.1`, httpStatus: 405 },
  { name: "an unknown content type", start: `POST ${waterBedProcedure} HTTP/1.1`,
    header: ["content-type: text/plain", "x-key: k", announced], httpStatus: 415 },
  { name: "an unknown content coding", header: [json, "x-key: k", "content-encoding: x", announced], httpStatus: 415 },
  { name: "a URL over the limit", start: `POST /${"x".repeat(10_000)} HTTP/1.1`, httpStatus: 414 },
  { name: "a header over the limit", header: [`x: ${"x".repeat(20_000)}`, announced], httpStatus: 431 },
  { name: "an unsupported expectation", header: ["expect: wonders", "x-key: k", announced], httpStatus: 417 },
  { name: "an invalid chunk", header: [json, "x-key: k", inChunks], httpStatus: 400 },
  { name: "invalid HTTP", start: "orders", httpStatus: 400 },
  { name: "a body over the limit with Connection: close", header: [json, "x-key: k", announced, close],
    httpStatus: 413 },
  { name: "a chunked body with Connection: close", header: [json, "x-key: k", inChunks, close], body: chunks,
    httpStatus: 413 },
  { name: "a request before more bytes than Connection: close allows", start: "GET /nothing HTTP/1.1",
    header: ["x-key: k", close], httpStatus: 404 },
  { name: "CONNECT", start: "CONNECT x:1 HTTP/1.1", httpStatus: 400 },
];

const certificate = createCertificate("localhost");
const tls = { ca: certificate.cert, servername: "localhost" };

describe("a client that sends its whole body before it reads", () => {
  let greenhouse: TestGreenhouse;
  let nodeServer: Server;
  let nodeAddress: Address;
  beforeAll(async () => {
    const options = { admit: needsKey, readMaxBytes: 100 };
    greenhouse = await startGreenhouse({}, options, { tls: certificate, allowCleartext: true });
    nodeServer = createServer(greenhouse.gateway.handler);
    const { hostname, port } = new URL(await listenOnLoopback(nodeServer));
    nodeAddress = { address: hostname, port: Number(port) };
  });
  afterAll(async () => {
    nodeServer.close();
    nodeServer.closeAllConnections();
    await greenhouse[Symbol.asyncDispose]();
  });

  test.each(rows)("gets the error response to $name before it is disconnected", async (row) => {
    const start = row.start ?? `POST ${restPath} HTTP/1.1`;
    using connection = await openHttp1(greenhouse.address);
    await sendAll(connection, requestBytes(start, row.header ?? [json, "x-key: k", announced], row.body ?? body));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: row.httpStatus });
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets the error response over TLS", async () => {
    using connection = await openHttp1(greenhouse.address, tls);
    await sendAll(connection, requestBytes(`POST ${restPath} HTTP/1.1`, [json, "x-key: k", announced], body));
    expect([await connection.readResponse(), await connection.atEnd()]).toMatchObject([{ httpStatus: 413 }, true]);
  });

  test.each([
    { name: "the gateway", open: () => greenhouse.address },
    { name: "node:http", open: () => nodeAddress },
  ])("is disconnected by $name if it sends 64 MiB after the response", async ({ open }) => {
    using connection = await openHttp1(open());
    const length = "content-length: 1000000000";
    connection.write(requestBytes(`POST ${restPath} HTTP/1.1`, [json, "x-key: k", length], Buffer.of()));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 413 });
    let sent = 0;
    while (sent < 1_000_000_000) {
      const refused = await new Promise((resolve) => connection.socket.write(body, resolve));
      if (refused instanceof Error) break;
      sent += body.byteLength;
    }
    expect(sent).toBeGreaterThanOrEqual(48 * 1024 * 1024);
    expect(sent).toBeLessThan(128 * 1024 * 1024);
  });
});

test.each([
  { name: "on a cleartext connection", options: undefined },
  { name: "over TLS", options: tls },
])("a large response $name arrives completely before Connection: close takes effect", async ({ options }) => {
  const note = "orders".repeat(500_000);
  const listen = { tls: certificate, allowCleartext: true };
  await using greenhouse = await startGreenhouse({ getReading: () => ({ sensor: note }) }, {}, listen);
  using connection = await openHttp1(greenhouse.address, options);
  using other = await openHttp1(greenhouse.address, options);
  connection.write("GET /sensors/a/reading HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ sensor: note });
  expect(await connection.atEnd()).toBe(true);
  other.write("GET /sensors/a/reading HTTP/1.1\r\nhost: x\r\n\r\n");
  expect((await other.readResponse()).httpStatus).toBe(200);
});

test("a client that idles after its last response is disconnected", async () => {
  const closed = Promise.withResolvers<unknown>();
  const admit = (): void => closed.resolve(nextEvent("close"));
  await using greenhouse = await startGreenhouse({}, { limits: { requestTimeoutMs: 500 }, admit });
  using connection = await openHttp1(greenhouse.address);
  // The request completes after its response, so node's request timeout does not close the connection.
  connection.write("POST /nothing HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n");
  expect([await connection.readResponse(), await connection.atEnd()]).toMatchObject([{ httpStatus: 404 }, true]);
  await within(closed.promise, "the server to close the connection");
});

test("requests after a Connection: close response are ignored", async () => {
  let calls = 0;
  await using connection = await openGreenhouse(openHttp1, { waterBed: () => ((calls += 1), {}) });
  const refused = "POST /nothing HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
  const call = `POST ${restPath} HTTP/1.1\r\nhost: x\r\n${json}\r\ncontent-length: 2\r\n\r\n{}`;
  connection.write(refused + call);
  expect([await connection.readResponse(), await connection.atEnd()]).toMatchObject([{ httpStatus: 404 }, true]);
  connection.write(call);
  connection.socket.end();
  await within(once(connection.socket, "close"), "the end");
  expect([connection.greenhouse.completedRequests.length, calls]).toEqual([1, 0]);
});
