import { createServer as createHttp1, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { acceptedSocket, type Address, createCertificate, fieldValue, type Http1Connection, openHttp1, startOnLoopback
} from "@protoport/testing";
import { createGateway, type Gateway, type GatewayOptions } from "../../../src/index.ts";

// After a header with Connection: Upgrade, node's parser drops the rest of the read. The parser treats the next read as
// a new request, although that may be the middle of a body.

const certificate = createCertificate("upgrade");

/** A server that records the beds that it waters. Bed 1 is watered after `release`. */
interface Beds {
  readonly address: Address;
  readonly watered: string[];
  release(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Way {
  readonly name: string;
  readonly isTls?: boolean;
  start(gateway: (options?: Partial<GatewayOptions>) => Gateway): Promise<Omit<Beds, "watered" | "release">>;
}

async function listen(gateway: Gateway): Promise<Omit<Beds, "watered" | "release">> {
  return { address: await gateway.listen(), [Symbol.asyncDispose]: () => gateway.close() };
}

const mount = async (server: Server): Promise<Omit<Beds, "watered" | "release">> => await startOnLoopback(server);
const createTls = (handler: Gateway["handler"]) => createHttps(certificate, handler);
const ways: readonly Way[] = [
  { name: "a gateway mounted in node:http", start: (create) => mount(createHttp1(create().handler)) },
  { name: "a gateway mounted in node:https", isTls: true, start: (create) => mount(createTls(create().handler)) },
];

async function startBeds(way: Pick<Way, "start">): Promise<Beds> {
  const watered: string[] = [];
  const held = Promise.withResolvers<void>();
  const running = await way.start((options) =>
    createGateway({
      routes: (router) =>
        router.service(GreenhouseService, {
          waterBed: async ({ bed, note }) => {
            if (bed === 1n) await held.promise;
            watered.push(`${bed}${note}`);
            return { bed, note };
          },
        }),
      ...options,
    }),
  );
  return { ...running, watered, release: held.resolve };
}

/** Returns a request to water a bed. */
function water(bed: number, fields: readonly string[] = [], body = "{}", version = "1.1"): string {
  const length = `content-length: ${String(body.length)}`;
  const head = [`POST /beds/${String(bed)}:water HTTP/${version}`, "host: x", "content-type: application/json"];
  return [...head, length, ...fields, "", body].join("\r\n");
}

const upgrade = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"];

/** Writes bytes, and waits until the server has read them. */
async function deliver(connection: Http1Connection, bytes: string): Promise<void> {
  const server = acceptedSocket();
  const before = server.bytesRead;
  connection.write(bytes);
  await expect.poll(() => server.bytesRead - before).toBeGreaterThanOrEqual(bytes.length);
}

describe.each(ways)("an upgrade request to $name", (way) => {
  const tls = way.isTls === true ? { ca: certificate.cert, servername: "localhost" } : undefined;

  test.each([
    ["h2c", upgrade, undefined],
    ["a WebSocket", ["Connection: keep-alive, upgrade", "Upgrade: websocket"], undefined],
    ["several protocols", ["connection: UPGRADE", "upgrade: TLS/1.3", "upgrade: h2c"], undefined],
    ["h2c over HTTP/1.0", ["connection: keep-alive", "connection: upgrade", "upgrade: h2c"], "1.0"],
  ])("for %s is the last request on its connection", async (_name, fields, version) => {
    await using beds = await startBeds(way);
    using connection = await openHttp1(beds.address, tls);
    connection.write(water(2, fields, '{"note":"!"}', version) + water(3));
    const response = await connection.readResponse();
    expect(JSON.parse(String(response.body))).toEqual({ bed: "2", note: "!" });
    expect(fieldValue(response.header, "connection")).toBe("close");
    connection.write(water(4));
    expect([await connection.atEnd(), beds.watered]).toEqual([true, ["2!"]]);
  });

  test("does not let the next request's body be parsed as a request", async () => {
    await using beds = await startBeds(way);
    using connection = await openHttp1(beds.address, tls);
    const inBody = water(4);
    const head = `POST /beds/3:water HTTP/1.1\r\nhost: x\r\ncontent-length: ${String(inBody.length)}\r\n\r\n`;
    await deliver(connection, `GET /beds HTTP/1.1\r\nhost: x\r\n${upgrade.join("\r\n")}\r\n\r\n${head}`);
    connection.write(inBody);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 404 });
    expect([await connection.atEnd(), beds.watered]).toEqual([true, []]);
  });

  test("is the last request even if its response is slow", async () => {
    await using beds = await startBeds(way);
    using connection = await openHttp1(beds.address, tls);
    await deliver(connection, water(1, upgrade));
    // More than a gateway connection queues.
    await deliver(connection, water(3).repeat(3000));
    await deliver(connection, "not HTTP\r\n\r\n");
    beds.release();
    const response = await connection.readResponse();
    expect(fieldValue(response.header, "connection")).toBe("close");
    expect([JSON.parse(String(response.body)), await connection.atEnd()]).toEqual([{ bed: "1" }, true]);
    expect(beds.watered).toEqual(["1"]);
  });

  test("is the last request even if its body arrives in parts", async () => {
    await using beds = await startBeds(way);
    using connection = await openHttp1(beds.address, tls);
    const request = water(1, upgrade, '{"note":"!"}');
    await deliver(connection, request.slice(0, -7));
    await deliver(connection, request.slice(-7, -3));
    await deliver(connection, request.slice(-3) + water(3));
    await deliver(connection, water(4));
    beds.release();
    expect(JSON.parse(String((await connection.readResponse()).body))).toEqual({ bed: "1", note: "!" });
    expect([await connection.atEnd(), beds.watered]).toEqual([true, ["1!"]]);
  });

  test("gets its response after earlier requests", async () => {
    await using beds = await startBeds(way);
    using connection = await openHttp1(beds.address, tls);
    await deliver(connection, water(1) + water(2, upgrade) + water(3));
    await deliver(connection, water(4));
    beds.release();
    const first = await connection.readResponse();
    expect(fieldValue(first.header, "connection")).not.toBe("close");
    expect(JSON.parse(String(first.body))).toMatchObject({ bed: "1" });
    expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ bed: "2" });
    expect([await connection.atEnd(), beds.watered.toSorted()]).toEqual([true, ["1", "2"]]);
  });
});

test.each([
  { name: "an Upgrade field but no Connection: upgrade", fields: ["upgrade: h2c"] },
  { name: "Connection: upgrade but no Upgrade field", fields: ["connection: upgrade"] },
  { name: "an empty Upgrade field", fields: ["connection: upgrade", "upgrade:"] },
])("a request with $name keeps its connection open", async ({ fields }) => {
  await using beds = await startBeds({ start: (create) => mount(createHttp1(create().handler)) });
  using connection = await openHttp1(beds.address);
  connection.write(water(2, fields) + water(3));
  for (const bed of ["2", "3"])
    expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ bed });
});

test("a listening gateway ignores Upgrade, and serves the requests after it", async () => {
  await using beds = await startBeds({ start: (create) => listen(create()) });
  using connection = await openHttp1(beds.address);
  connection.write(water(2, upgrade) + water(3));
  for (const bed of ["2", "3"])
    expect(JSON.parse(String((await connection.readResponse()).body))).toMatchObject({ bed });
  expect(beds.watered).toEqual(["2", "3"]);
});

describe("an application around a mounted gateway", () => {
  const handshake = "GET /socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

  test("gets the connection in its upgrade listener", async () => {
    await using beds = await startBeds({
      start: (create) =>
        mount(
          createHttp1(create().handler).on("upgrade", (_request, socket, head) => {
            socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
            socket.write(head);
            socket.pipe(socket);
          }),
        ),
    });
    using connection = await openHttp1(beds.address);
    await deliver(connection, `${handshake}first `);
    connection.write("second");
    connection.socket.end();
    expect(String(await connection.readToEnd())).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\nfirst second$/);
  });

  test.each(["next", "fallback"])(
    "closes the connection after %s() responds to an upgrade request",
    async (passedTo) => {
      const seen: (string | undefined)[] = [];
      const answer: NonNullable<GatewayOptions["fallback"]> = ({ url }, response) => {
        seen.push(url);
        response.end("app");
      };
      await using beds = await startBeds({
        start: (create) => {
          const { handler } = create({ fallback: answer });
          // A second gateway finds the first one's connection as the first one left it.
          const second = create({ fallback: answer });
          return mount(
            createHttp1((request, response) => {
              if (passedTo === "fallback") return handler(request, response);
              handler(request, response, () => second.handler(request, response, () => answer(request, response)));
            }),
          );
        },
      });
      using connection = await openHttp1(beds.address);
      connection.write(handshake + water(3));
      const response = await connection.readResponse();
      expect([fieldValue(response.header, "connection"), String(response.body)]).toEqual(["close", "app"]);
      connection.write(water(4));
      expect(await connection.atEnd()).toBe(true);
      expect({ seen, watered: beds.watered }).toEqual({ seen: ["/socket"], watered: [] });
    },
  );

  test("gets an upgrade request in next() even if the response has started", async () => {
    await using beds = await startBeds({
      start: (create) => {
        const { handler } = create();
        return mount(
          createHttp1((request, response) => {
            response.flushHeaders();
            handler(request, response, () => response.end("app"));
          }),
        );
      },
    });
    using connection = await openHttp1(beds.address);
    connection.write(handshake);
    expect(String((await connection.readResponse()).body)).toBe("app");
  });
});
