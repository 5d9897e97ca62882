import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService, type Reading } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { connectNodeAdapter, createGateway, type Gateway, type GatewayOptions } from "../src/index.ts";
import { fieldValue, type Http1Connection, openHttp1, startOnLoopback, throws, within } from "@protoport/testing";

// Clients of a node:http server that wait for 100 (Continue) before they send a body (RFC 9110 §10.1.1).

const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
const notAdmitted: Partial<GatewayOptions> = { admit: throws(new ConnectError("nobody", Code.Unauthenticated)) };

/** Options for a gateway that responds to a stream after the first reading. */
const greenhouseOptions: GatewayOptions = {
  rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] },
  routes: (router) =>
    router.service(GreenhouseService, {
      waterBed: ({ note }) => ({ note }),
      recordReadings: async (readings: AsyncIterable<Reading>) => {
        for await (const _ of readings) return { count: 1 };
        return {};
      },
    }),
};

const createGreenhouse = (options: Partial<GatewayOptions> = {}): Gateway =>
  createGateway({ ...greenhouseOptions, ...options });

/** Returns the head for a request whose client waits for 100 (Continue). */
function headOf(path: string, bytes: number, contentType = "application/json"): string {
  const fields = `host: x\r\ncontent-type: ${contentType}\r\ncontent-length: ${String(bytes)}\r\nexpect: 100-continue`;
  return `POST ${path} HTTP/1.1\r\n${fields}\r\n\r\n`;
}

/** Writes a head, and waits for an interim response. */
async function writeAndWait(connection: Http1Connection, head: string): Promise<void> {
  const told = once(connection.socket, "data");
  connection.write(head);
  await within(told, "100 (Continue)");
}

const onExpect = (listener: RequestListener): Server => createServer().on("checkContinue", listener);

/** Servers that send 100 (Continue) in different ways. */
const servers: readonly { name: string; create: (gateway: Gateway) => Server }[] = [
  { name: "node:http", create: ({ handler }) => createServer(handler) },
  { name: "node:http with connectNodeAdapter", create: () => createServer(connectNodeAdapter(greenhouseOptions)) },
  { name: "the gateway", create: ({ checkContinue }) => onExpect(checkContinue) },
  {
    name: "the application",
    create: ({ handler }) =>
      onExpect((request, response) => {
        response.writeContinue();
        handler(request, response);
      }),
  },
];

test.each(servers)("$name sends 100 (Continue) once for each request of a connection", async ({ create }) => {
  await using server = await startOnLoopback(create(createGreenhouse()));
  using connection = await openHttp1(server.address);
  for (const note of ["first", "second"]) {
    const body = JSON.stringify({ note });
    await writeAndWait(connection, headOf("/beds/7:water", body.length));
    connection.write(body);
    const answer = await connection.readResponse();
    expect(answer).toMatchObject({ httpStatus: 200, interim: [100] });
    expect(JSON.parse(String(answer.body))).toEqual({ note });
  }
});

describe("checkContinue", () => {
  test.each([
    ["a request that is not admitted", "/beds/7:water", 2, notAdmitted, 401],
    ["a request without a matching rule", "/nothing", 2, {}, 404],
    ["a Content-Length over the limit", "/beds/7:water", 11, { readMaxBytes: 10 }, 413],
  ])("rejects %s without 100 (Continue) and closes the connection", async (_name, path, bytes, options, want) => {
    const faults: unknown[] = [];
    const { checkContinue } = createGreenhouse({ ...options, onFault: (error) => faults.push(error) });
    await using server = await startOnLoopback(createServer().on("checkContinue", checkContinue));
    using connection = await openHttp1(server.address);
    connection.write(headOf(path, bytes));
    const answer = await connection.readResponse();
    expect(answer).toMatchObject({ httpStatus: want, interim: [] });
    expect([fieldValue(answer.header, "connection"), await connection.atEnd(), faults]).toEqual(["close", true, []]);
  });
});

test.each([
  { name: "if node:http has sent 100 (Continue)", create: ({ handler }: Gateway): Server => createServer(handler) },
  { name: "if no 100 (Continue) was sent", create: (gateway: Gateway): Server => onExpect(gateway.handler) },
])("$name, a refused request closes the connection", async (row) => {
  await using server = await startOnLoopback(row.create(createGreenhouse(notAdmitted)));
  using connection = await openHttp1(server.address);
  connection.write(headOf("/beds/7:water", 2));
  const answer = await connection.readResponse();
  expect([answer.httpStatus, fieldValue(answer.header, "connection")]).toEqual([401, "close"]);
});

test("the connection stays open after an unread body that got 100 (Continue)", async () => {
  const { handler, checkContinue } = createGreenhouse();
  await using server = await startOnLoopback(createServer(handler).on("checkContinue", checkContinue));
  using connection = await openHttp1(server.address);
  const line = '{"sensor":"a"}\n';
  await writeAndWait(connection, headOf("/readings", 2 * line.length, "application/x-ndjson"));
  connection.write(line);
  const answer = await connection.readResponse();
  expect(answer).toMatchObject({ httpStatus: 200, interim: [100] });
  expect(fieldValue(answer.header, "connection")).not.toBe("close");
  connection.write(`${line}GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n`);
  expect((await connection.readResponse()).httpStatus).toBe(404);
});

/** The rest of the application, which sends 100 (Continue) itself. */
async function answerItself(request: AsyncIterable<Uint8Array>, response: ServerResponse): Promise<void> {
  response.writeContinue();
  response.end(`mine: ${await text(request)}`);
}

test("the gateway sends no 100 (Continue) for an unmatched request", async () => {
  const { checkContinue } = createGreenhouse();
  const server = createServer().on("checkContinue", (request, response) => {
    checkContinue(request, response, () => void answerItself(request, response));
  });
  await using listening = await startOnLoopback(server);
  using connection = await openHttp1(listening.address);
  await writeAndWait(connection, headOf("/mine", 2));
  connection.write("{}");
  const answer = await connection.readResponse();
  expect([answer, String(answer.body)]).toMatchObject([{ httpStatus: 200, interim: [100] }, "mine: {}"]);
});

test("the gateway sends 100 (Continue) only to clients that expect it", async () => {
  await using server = await startOnLoopback(createServer(createGreenhouse().checkContinue));
  using connection = await openHttp1(server.address);
  connection.write(headOf("/beds/7:water", 2).replace("expect: 100-continue", "x: y"));
  connection.write("{}");
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, interim: [] });
});
