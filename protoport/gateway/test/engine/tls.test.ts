import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, createByteReader, createCertificate, exchangeHttp1, type Http1Connection, openHttp2, overHttp1,
  shared, startGreenhouse, type TestGreenhouse, within } from "@protoport/testing";

const water = { httpMethod: "POST", path: "/beds/7:water", header: [["content-type", "application/json"]] as const };
const wholeWater = { ...water, body: Buffer.from("{}") };

/** A client's TLS connection that speaks HTTP/1.1 and shows its server's certificate. */
async function openTls(address: Address, options: ConnectionOptions): Promise<Http1Connection & { peerName: string }> {
  const socket = connectTls({ host: address.address, port: address.port, servername: "localhost", ...options });
  const reader = createByteReader(socket);
  await within(once(socket, "secureConnect"), "the handshake");
  const peerName = String(socket.getPeerCertificate().subject.CN);
  return Object.assign(overHttp1(socket, reader, "localhost"), { peerName });
}

/** Resolves to whether the server closed the connection without sending anything. */
const isClosed = async (socket: Socket): Promise<boolean> => await createByteReader(socket).atEnd();

describe("a server with a certificate", () => {
  const certificate = createCertificate("first");
  const tls = certificate;
  const greenhouse = shared(() => startGreenhouse({ waterBed: (_, { url }) => ({ note: url }) }, {}, { tls }));
  test("serves HTTP/1.1 to a client that offers HTTP/1.1 or no ALPN", async () => {
    for (const ALPNProtocols of [["http/1.1"], undefined]) {
      const options = { ca: certificate.cert, ...(ALPNProtocols && { ALPNProtocols }) };
      using connection = await openTls(greenhouse.address, options);
      connection.request(wholeWater);
      const response = await connection.readResponse();
      expect(JSON.parse(String(response.body))).toMatchObject({ note: "https://localhost/beds/7:water" });
    }
  });

  test("serves HTTP/2 to a client that offers HTTP/2", async () => {
    using connection = await openHttp2(greenhouse.address, { ca: certificate.cert, servername: "localhost" });
    const response = await connection.exchange(wholeWater);
    expect(JSON.parse(String(response.body))).toMatchObject({ note: expect.stringMatching(/^https:/) });
  });

  test("refuses a client that offers only other protocols", async () => {
    const { address: host, port } = greenhouse.address;
    const names = { servername: "localhost", ALPNProtocols: ["acme-tls/1"] };
    const socket = connectTls({ host, port, ca: certificate.cert, ...names });
    await expect(within(once(socket, "secureConnect"), "a handshake")).rejects.toThrow(/alert no application protocol/);
  });

  test.each([
    { name: "HTTP/1.1", says: "GET / HTTP/1.1\r\nhost: x\r\n\r\n" },
    { name: "HTTP/2", says: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
  ])("closes a cleartext $name connection", async ({ says }) => {
    const socket = connectTcp({ host: greenhouse.address.address, port: greenhouse.address.port });
    socket.on("error", () => {});
    socket.write(says);
    expect(await isClosed(socket)).toBe(true);
  });
});

describe("the header timeout of a TLS server", () => {
  const certificate = createCertificate("first");
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    // A handshake must be complete by then, even on a busy machine.
    const limits = { headerTimeoutMs: 1000, idleTimeoutMs: 1000 };
    greenhouse = await startGreenhouse({}, { limits }, { tls: certificate });
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  // Each test only waits, for a second, so they run concurrently.
  test.concurrent.for([
    { name: "begins a handshake and sends nothing more", says: Buffer.of(22, 3, 1, 2, 0) },
    { name: "sends invalid data in a handshake", says: Buffer.from([22, ...Buffer.from("orders\r\n\r\n")]) },
  ])("a client that $name is disconnected", async ({ says }) => {
    const socket = connectTcp({ host: greenhouse.address.address, port: greenhouse.address.port });
    socket.on("error", () => {});
    socket.resume().write(says);
    await within(once(socket, "close"), "the connection to close");
  });

  test.concurrent.for([{ ALPNProtocols: ["http/1.1"] }, { ALPNProtocols: ["h2"] }])(
    "disconnects a client with ALPN $ALPNProtocols that sends no request",
    async ({ ALPNProtocols }) => {
      using connection = await openTls(greenhouse.address, { ca: certificate.cert, ALPNProtocols });
      await connection.readToEnd();
      expect(connection.socket.readableEnded || connection.socket.destroyed).toBe(true);
    },
  );
});

test("allowCleartext serves cleartext and TLS on one port", async () => {
  const tls = createCertificate("first");
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, {}, { tls, allowCleartext: true });
  expect((await exchangeHttp1(greenhouse.address, wholeWater)).httpStatus).toBe(200);
  using connection = await openTls(greenhouse.address, { ca: tls.cert });
  connection.request(wholeWater);
  expect((await connection.readResponse()).httpStatus).toBe(200);
});

test("a renewed certificate applies to new connections and keeps open connections", async () => {
  const [first, second] = [createCertificate("first"), createCertificate("second")];
  const ca = [first.cert, second.cert];
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, {}, { tls: first });
  using http1 = await openTls(greenhouse.address, { ca });
  using http2 = await openHttp2(greenhouse.address, { ca, servername: "localhost" });
  expect(http1.peerName).toBe("first");
  greenhouse.gateway.setSecureContext(second);
  using renewed = await openTls(greenhouse.address, { ca });
  expect(renewed.peerName).toBe("second");
  for (const connection of [http1, renewed]) {
    connection.request(wholeWater);
    expect((await connection.readResponse()).httpStatus).toBe(200);
  }
  expect((await http2.exchange(wholeWater)).httpStatus).toBe(200);
});

describe("a server that requires client certificates", () => {
  const [certificate, client] = [createCertificate("server"), createCertificate("client")];
  const stranger = createCertificate("x");
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    const tls = { ...certificate, ca: client.cert, requestCert: true, rejectUnauthorized: true };
    greenhouse = await startGreenhouse({ waterBed: () => ({}) }, {}, { tls });
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test("serves a client with a trusted certificate", async () => {
    using connection = await openTls(greenhouse.address, { ...client, ca: certificate.cert });
    connection.request(wholeWater);
    expect((await connection.readResponse()).httpStatus).toBe(200);
  });

  test.each([
    { name: "without a certificate", shown: {} },
    { name: "with an untrusted certificate", shown: stranger },
  ])("refuses a client $name without a response", async ({ shown }) => {
    const { address: host, port } = greenhouse.address;
    const socket = connectTls({ host, port, ca: certificate.cert, servername: "localhost", ...shown });
    socket.on("error", () => {});
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect(await isClosed(socket)).toBe(true);
  });
});
