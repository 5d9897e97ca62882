import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, createByteReader, createCertificate, exchange, type Field, freePort, type HttpVersion,
  type LogLines, openLogLines, overHttp1, wires, within } from "@protoport/testing";
import { binaryHeader, ipv4Addresses } from "../../protoport/testing/src/gateway/proxy-header.ts";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { authorized, startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";

const certificate = createCertificate("behind a proxy");
const loopback = ["127.0.0.0/8"];

async function openWith({ address, port }: Address, pieces: readonly (string | Uint8Array)[]): Promise<Socket> {
  const socket = connectTcp({ host: address, port, noDelay: true });
  socket.on("error", () => {});
  await within(once(socket, "connect"), "a connection");
  for (const piece of pieces) {
    socket.write(piece);
    // The server may read the next piece separately or not. Both must work.
    await new Promise(setImmediate);
  }
  return socket;
}

async function get(socket: Socket, version: HttpVersion, tls: boolean): Promise<number> {
  const secure = tls
    ? connectTls({
        socket,
        ca: certificate.cert,
        servername: "localhost",
        ALPNProtocols: [version === "2" ? "h2" : "http/1.1"],
      })
    : socket;
  if (version === "1.1") {
    using connection = overHttp1(secure, createByteReader(secure), "localhost");
    connection.request({ httpMethod: "GET", path: "/livez", header: [] });
    return (await connection.readResponse()).httpStatus;
  }
  const session = connectHttp2(`${tls ? "https" : "http"}://localhost`, { createConnection: () => secure });
  const stream = session.request({ ":path": "/livez" });
  const [header] = await within(once(stream, "response"), "a response");
  session.destroy();
  return Number(header[":status"]);
}

async function loggedPeer({ lines }: LogLines): Promise<unknown> {
  const find = (): Record<string, unknown> | undefined => lines().find(({ msg }) => msg === "call");
  await expect.poll(find).toBeDefined();
  return find()?.["peer"];
}

const text = "PROXY TCP4 203.0.113.7 192.0.2.9 47 443\r\n";
const transports = (["1.1", "2"] as const).flatMap((version) =>
  [false, true].map((tls) => ({ name: `HTTP/${version}${tls ? " with TLS" : ""}`, version, tls })),
);

describe.each(transports)("the PROXY protocol over $name", ({ version, tls }) => {
  const options = { proxyProtocol: "on", trustedProxies: loopback, ...(tls && { tls: certificate }) } as const;

  test.each([
    ["binary header", [binaryHeader(0x21, 0x11, ipv4Addresses)], "203.0.113.7"],
    ["text header in single bytes", [...Buffer.from(text)].map((byte) => Buffer.of(byte)), "203.0.113.7"],
    ["header without a client, as health checks send it,", [binaryHeader(0x20, 0x00, Buffer.alloc(0))], "127.0.0.1"],
  ])("a %s determines the logged peer", async (_name, pieces, want) => {
    const log = openLogLines("info");
    await using server = await startPlantServer({ ...options, log: log.log });
    using socket = disposable(await openWith(server.address, pieces));
    expect(await get(socket.value, version, tls)).toBe(200);
    expect(await loggedPeer(log)).toBe(want);
  });
});

test("two connections from the same proxy port are logged with different clients", async () => {
  const log = openLogLines("info");
  const options = { proxyProtocol: "on", trustedProxies: loopback, tls: certificate, host: "0.0.0.0" } as const;
  await using server = await startPlantServer({ ...options, log: log.log });
  const { port } = server.address;
  const ofTheProxy = { localAddress: "127.0.0.1", localPort: await freePort() };
  using first = disposable(connectTcp({ host: "127.0.0.1", port, ...ofTheProxy }));
  using second = disposable(connectTcp({ host: "127.0.0.2", port, ...ofTheProxy }));
  await within(Promise.all([first, second].map(({ value }) => once(value, "connect"))), "two connections");
  // Both headers arrive before the first request.
  first.value.write("PROXY TCP4 203.0.113.1 192.0.2.9 47 443\r\n");
  second.value.write("PROXY TCP4 203.0.113.2 192.0.2.9 47 443\r\n");
  expect(await get(second.value, "1.1", true)).toBe(200);
  expect(await get(first.value, "1.1", true)).toBe(200);
  const peers = (): unknown[] => log.lines().flatMap(({ msg, peer }) => (msg === "call" ? [peer] : []));
  await expect.poll(peers).toEqual(["203.0.113.2", "203.0.113.1"]);
});

function disposable(value: Socket): { value: Socket; [Symbol.dispose](): void } {
  return { value, [Symbol.dispose]: () => void value.destroy() };
}

const invalidHeaders: readonly { name: string; pieces: readonly (string | Uint8Array)[] }[] = [
  { name: "no PROXY header", pieces: ["GET /livez HTTP/1.1\r\nhost: a\r\n\r\n"] },
  { name: "a malformed PROXY header", pieces: ["PROXY TCP4 a b c d\r\n"] },
  { name: "a PROXY header that claims 64 KiB", pieces: [binaryHeader(0x21, 0x11, ipv4Addresses, 65_535)] },
];

test.each(invalidHeaders)(
  "with $name, a trusted proxy's connection is closed without a response",
  async ({ pieces }) => {
    await using server = await startPlantServer({ proxyProtocol: "on", trustedProxies: loopback });
    expect(await createByteReader(await openWith(server.address, pieces)).atEnd()).toBe(true);
  },
);

test.each([
  { name: "text", header: text },
  { name: "binary", header: binaryHeader(0x21, 0x11, ipv4Addresses) },
])("a server treats an untrusted peer's $name PROXY header as invalid HTTP", async ({ header }) => {
  const log = openLogLines("info");
  await using server = await startPlantServer({ proxyProtocol: "on", trustedProxies: ["192.0.2.1"], log: log.log });
  const untrusted = await openWith(server.address, [header, "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n"]);
  const { httpStatus } = await overHttp1(untrusted, createByteReader(untrusted), "a").readResponse();
  expect(httpStatus).toBe(400);
  using direct = disposable(await openWith(server.address, []));
  expect(await get(direct.value, "1.1", false)).toBe(200);
  expect(await loggedPeer(log)).toBe("127.0.0.1");
});

const forwardedFields: readonly Field[] = [
  ["x-forwarded-for", "198.51.100.1, 203.0.113.7"],
  ["x-forwarded-proto", "https"],
  ["x-forwarded-host", "plants.example"],
];

async function deleteThrough(
  server: TestPlantServer,
  { format, httpVersion }: (typeof wires)[number],
  header: readonly Field[],
): Promise<void> {
  await exchange(server.address, httpVersion, deletePlantRequest(format, 7n, [authorized, ...header]));
}

describe.each(wires)("$name", (wire) => {
  test("the audit line has the forwarded client only behind a trusted proxy", async () => {
    for (const [addresses, want] of [
      [["127.0.0.1"], "203.0.113.7"],
      [["192.0.2.1"], "127.0.0.1"],
    ] as const) {
      const log = openLogLines("info");
      await using server = await startPlantServer({ log: log.log, trustedProxies: addresses });
      await deleteThrough(server, wire, forwardedFields);
      expect(await loggedPeer(log)).toBe(want);
    }
  });

  test("onRequest gets the client's address and origin", async () => {
    const requests: object[] = [];
    await using server = await startPlantServer({
      trustedProxies: loopback,
      onRequest: ({ peer: { address, port }, origin }) => requests.push({ address, port, origin }),
    });
    await deleteThrough(server, wire, forwardedFields);
    await deleteThrough(server, wire, []);
    expect(requests).toMatchObject([
      { address: "203.0.113.7", port: 0, origin: "https://plants.example" },
      { address: "127.0.0.1", origin: `http://127.0.0.1:${server.address.port}` },
    ]);
  });
});
