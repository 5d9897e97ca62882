import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { type Address, clientPreface, type EveryTransport, type Field, frame, frameBytes, frameType, headerBlock,
  type HttpRequest, openEveryTransport, openHttp1, openHttp2, openSocket, readHttp2Response, type TransportName,
  transportNames, waterBedProcedure } from "@protoport/testing";
import type { GatewayOptions, Limits } from "../../../../src/index.ts";

// Exceeds each limit at each HTTP server and engine, and compares what a client sees with the table in
// protoport/docs/reference/gateway-options.md.

/** A server, and whether the table says that the limit has an effect there. */
type Door = { readonly every: EveryTransport; readonly name: TransportName; readonly isLimited: boolean };

/** Returns what a client sees that exceeds a limit, in the table's words. */
type Observe = (door: Door) => Promise<string>;
/** What a client exceeds, in the table's first column, the options that set the limit, and what the client sees. */
type Row = readonly [about: string, options: Partial<GatewayOptions>, observe: Observe];

const unlimited = "unlimited";
/** Milliseconds to wait for an effect that the table denies. */
const settledMs = 500;
/** Milliseconds to wait for an effect that the table lists. The default timeouts are longer, so they do not cause it. */
const limitedMs = 8_000;

const routes: GatewayOptions["routes"] = (router) =>
  router.service(GreenhouseService, {
    getReading: async ({ sensor }) => {
      if (sensor === "slow") await sleep(settledMs);
      return { sensor };
    },
    waterBed: ({ note }) => ({ note }),
  });

const reading: HttpRequest = { httpMethod: "GET", path: "/sensors/a/reading", header: [] };
const slowReading: HttpRequest = { ...reading, path: "/sensors/slow/reading" };
const longField: Field = ["x-long", "x".repeat(5_000)];
const smallFields = Array.from({ length: 120 }, (_, at): Field => [`x-${String(at)}`, ""]);
const body = Buffer.from(JSON.stringify({ note: "n".repeat(200) }));
const json: Field = ["content-type", "application/json"];
const bed: HttpRequest = { httpMethod: "POST", path: "/beds/1:water", header: [json], body };

const asks =
  (request: HttpRequest): Observe =>
  async ({ every, name }) => {
    const { httpStatus } = await every.ask(name, request);
    return httpStatus === 200 ? unlimited : String(httpStatus);
  };

/** Observes a server that has an address; Fetch has "–". */
const onSocket =
  (observe: (address: Address, version: "1.1" | "2", isLimited: boolean) => Promise<string>): Observe =>
  async ({ every, name, isLimited }) =>
    name === "Fetch" ? "–" : await observe(...every.addressOf(name), isLimited);

const sends = (bytes: { readonly "1.1": string; readonly "2": readonly Buffer[] }): Observe =>
  onSocket(async (address, version, isLimited) => {
    const sent = version === "1.1" ? Buffer.from(bytes["1.1"]) : Buffer.concat(bytes["2"]);
    const received = await receiveFrom(address, sent, isLimited);
    if (received === undefined) return unlimited;
    return /^HTTP\/1\.1 (4\d\d)/.exec(received)?.[1] ?? "closed";
  });

/** Returns what arrives until the connection ends, or `undefined` if it stays open. */
async function receiveFrom(address: Address, sent: Buffer, isLimited: boolean): Promise<string | undefined> {
  const socket = openSocket(address);
  let received = "";
  socket.on("error", () => undefined).on("data", (data) => (received += data.toString("latin1")));
  socket.write(sent);
  const isClosed = await happens(ends(socket), isLimited);
  socket.destroy();
  return isClosed ? received : undefined;
}

const ends = (socket: Socket): Promise<unknown> => Promise.race([once(socket, "end"), once(socket, "close")]);

/** Returns whether an effect occurs in time. */
const happens = (effect: Promise<unknown>, isLimited: boolean): Promise<boolean> =>
  Promise.race([effect.then(() => true), sleep(isLimited ? limitedMs : settledMs, false)]);

const http2Start = [clientPreface, frameBytes(frame(frameType.settings, 0, 0))];

function requestFrame(method: string, path: string, flags: number, header: readonly Field[] = []): Buffer {
  const head = Object.entries({ ":method": method, ":path": path, ":scheme": "http", ":authority": "a" });
  return frameBytes(frame(frameType.headers, flags, 1, headerBlock([...head, ...header])));
}

/** Begins a request. The frame has no END_HEADERS. */
const incomplete = [...http2Start, requestFrame("GET", "/", 0x1)];
const sendsIncompleteHeader = sends({ "1.1": "GET / HTTP/1.1\r\n", "2": incomplete });

/** The table's rows. A limit without a row does not compile. */
// oxfmt-ignore
const limitRows: Readonly<Record<Exclude<keyof Limits, "backlogBytes" | "connectionWindowBytes">, Row>> &
  Readonly<Record<string, Row>> = {
  headerBytes: ["a large header field (`headerBytes`)", { limits: { headerBytes: 4_096 } },
    asks({ ...reading, header: [longField] })],
  manyFields: ["many small header fields (`headerBytes`)", { limits: { headerBytes: 4_096 } },
    asks({ ...reading, header: smallFields })],
  trailerBytes: ["large trailers of a request (`headerBytes`)", { limits: { headerBytes: 4_096 } },
    onSocket(sendTrailers)],
  urlBytes: ["a long URL (`urlBytes`)", { limits: { urlBytes: 1_000 } },
    asks({ ...reading, path: `${reading.path}?${"x".repeat(2_000)}` })],
  bodyBytes: ["a large body of REST (`readMaxBytes`)", { readMaxBytes: 100 }, asks(bed)],
  messageBytes: ["a large message of Connect (`readMaxBytes`)", { readMaxBytes: 100 },
    asks({ ...bed, path: waterBedProcedure })],
  headerTimeoutMs: ["an incomplete header (`headerTimeoutMs`)", { limits: { headerTimeoutMs: 50 } },
    sendsIncompleteHeader],
  requestTimeoutMs: ["an incomplete body (`requestTimeoutMs`)", { limits: { requestTimeoutMs: 50 } },
    onSocket(sendUnfinished)],
  headerIdleMs: ["an incomplete header (`idleTimeoutMs`)", { limits: { idleTimeoutMs: 50 } }, sendsIncompleteHeader],
  idleTimeoutMs: ["an idle connection (`idleTimeoutMs`)", { limits: { idleTimeoutMs: 50 } }, onSocket(sendThenIdle)],
  concurrentStreams: ["streams of a connection (`concurrentStreams`)", { limits: { concurrentStreams: 1 } },
    onSocket(readMaxStreams)],
  connections: ["connections (`connections`)", { limits: { connections: 1 } }, onSocket(connectOften)],
  defaultTimeoutMs: ["a slow call without a deadline (`defaultTimeoutMs`)", { limits: { defaultTimeoutMs: 50 } },
    asks(slowReading)],
};

async function sendThenIdle(address: Address, version: "1.1" | "2", isLimited: boolean): Promise<string> {
  const sent =
    version === "1.1"
      ? Buffer.from("GET /sensors/a/reading HTTP/1.1\r\nhost: a\r\n\r\n")
      : Buffer.concat([...http2Start, requestFrame("GET", reading.path, 0x5)]);
  return (await receiveFrom(address, sent, isLimited)) === undefined ? unlimited : "closed";
}

async function readMaxStreams(address: Address, version: "1.1" | "2"): Promise<string> {
  if (version === "1.1") return "–";
  using connection = await openHttp2(address);
  await new Promise((resolve) => connection.session.ping(resolve));
  return connection.session.remoteSettings.maxConcurrentStreams === 1 ? "announced" : unlimited;
}

async function connectOften(address: Address, _version: "1.1" | "2", isLimited: boolean): Promise<string> {
  const sockets = Array.from({ length: 70 }, () =>
    openSocket(address)
      .on("error", () => undefined)
      .resume(),
  );
  const isClosed = await happens(Promise.race(sockets.map(ends)), isLimited);
  for (const socket of sockets) socket.destroy();
  return isClosed ? "closed" : unlimited;
}

async function sendTrailers(address: Address, version: "1.1" | "2"): Promise<string> {
  const { httpStatus } = version === "1.1" ? await sendTrailersHttp1(address) : await sendTrailersHttp2(address);
  return httpStatus === 200 ? unlimited : String(httpStatus);
}

async function sendTrailersHttp1(address: Address): Promise<{ readonly httpStatus: number }> {
  using connection = await openHttp1(address);
  connection.request({ ...bed, body: Buffer.of(), header: [json, ["transfer-encoding", "chunked"]] });
  connection.write(`2\r\n{}\r\n0\r\n${longField.join(": ")}\r\n\r\n`);
  return await connection.readResponse();
}

async function sendTrailersHttp2(address: Address): Promise<{ readonly httpStatus: number }> {
  using connection = await openHttp2(address);
  const header = { ":method": "POST", ":path": bed.path, "content-type": "application/json" };
  const stream = connection.session.request(header, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ [longField[0]]: longField[1] }));
  stream.end("{}");
  return await readHttp2Response(stream);
}

/** Sends part of a body, and returns the response status or how the server ends the call. */
async function sendUnfinished(address: Address, version: "1.1" | "2", isLimited: boolean): Promise<string> {
  if (version === "1.1") {
    const head = `POST ${bed.path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`;
    const received = await receiveFrom(address, Buffer.from(head), isLimited);
    return received === undefined ? unlimited : (/^HTTP\/1\.1 (4\d\d)/.exec(received)?.[1] ?? "closed");
  }
  using connection = await openHttp2(address);
  const stream = connection.open({ ...bed, header: [json] }, { endStream: false });
  stream.on("error", () => undefined).write("{");
  let httpStatus = 0;
  stream.on("response", (header) => (httpStatus = Number(header[":status"])));
  if (!(await happens(once(stream, "close"), isLimited))) return unlimited;
  return httpStatus === 0 ? "reset" : String(httpStatus);
}

const page = readFileSync(join(import.meta.dirname, "../../../../../docs/reference/gateway-options.md"), "utf8");
const [, section = ""] = page.split("\n### Limits of each server\n");
const table = (section.split("\n## ")[0] ?? "").match(/^\|.*\|$/gm) ?? [];
const cells = table.map((line) => line.slice(2, -2).split(" | "));
const [heads = [], , ...documented] = cells;
const rows = Object.values(limitRows);

test("the table of limits documents exactly the tested limits and servers", () =>
  expect([heads.slice(1), documented.map(([title]) => title)]).toEqual([transportNames, rows.map(([about]) => about)]));

describe.each(rows)("%s", (about, options, observe) => {
  let every: EveryTransport;
  beforeAll(async () => {
    every = await openEveryTransport({ routes, ...options });
  });
  afterAll(() => every[Symbol.asyncDispose]());
  const wanted = documented.find(([first]) => first === about) ?? [];

  test.concurrent.each(transportNames.map((name, at) => ({ name, want: wanted[at + 1] })))(
    "over $name, the documented limit applies",
    async ({ name, want }) =>
      expect(await observe({ every, name, isLimited: want !== undefined && want !== unlimited })).toBe(want),
  );
});
