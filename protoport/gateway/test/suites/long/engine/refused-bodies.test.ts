import { EventEmitter, once } from "node:events";
import { type ClientHttp2Stream, constants } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Admit } from "../../../../src/index.ts";
// oxfmt-ignore
import { type Address, dataFrame, type Field, frameType, grpcHeader, headersFrame, http2Servers, type HttpRequest,
  leastOf, openFrames, openHttp1, openHttp2, retainedBytes, startGreenhouse, type TestGreenhouse, waterBedProcedure,
  within } from "@protoport/testing";
import { settingFrame, windowUpdateFrame } from "../../../../../testing/src/http2/http2-requests.ts";

// Refused requests have bodies that are never read.

const requests = 48;

function requestWith(bytes: number, ...more: readonly Field[]): HttpRequest {
  const header: Field[] = [["content-type", "application/proto"], ...more];
  return { httpMethod: "POST", path: waterBedProcedure, header, body: Buffer.alloc(bytes, "p") };
}

/** A connection for requests whose bodies never end. */
interface Transport extends Disposable {
  /**
   * Sends a request and waits for its response. Calls `sent` when the server has received the part of the body that was
   * sent.
   */
  exchange(at: number, request: HttpRequest, sent?: () => Promise<void>): Promise<void>;
  /** Sends a request, and disconnects when `sent` resolves. */
  leave(at: number, request: HttpRequest, sent: () => Promise<void>): Promise<void>;
}

async function openHttp1Transport(address: Address): Promise<Transport> {
  const connections = await Promise.all(Array.from({ length: requests }, () => openHttp1(address)));
  const send = (at: number, { header, body = Buffer.of(), ...request }: HttpRequest): void =>
    connections[at]?.request({ ...request, header: [...header, ["content-length", "3000000"]], body });
  return {
    exchange: async (at, request, sent) => {
      send(at, request);
      await sent?.();
      await connections[at]?.readResponse();
    },
    leave: async (at, request, sent) => {
      send(at, request);
      await sent();
      connections[at]?.[Symbol.dispose]();
    },
    [Symbol.dispose]: () => connections.forEach((connection) => connection[Symbol.dispose]()),
  };
}

async function openHttp2Transport(address: Address): Promise<Transport> {
  const connection = await openHttp2(address);
  // The stream is eventually reset.
  const open = (request: HttpRequest): ClientHttp2Stream =>
    connection
      .open(request, { endStream: false })
      .resume()
      .on("error", () => {});
  const untilIn = async (stream: ClientHttp2Stream, { body }: HttpRequest): Promise<void> => {
    await new Promise((resolve) => stream.write(body, resolve));
    // When a PING is acknowledged, the server has received everything sent before it.
    await new Promise((resolve) => connection.session.ping(resolve));
  };
  return {
    exchange: async (_, request, sent) => {
      const stream = open(request);
      const response = once(stream, "response");
      if (sent === undefined) stream.write(request.body);
      else {
        await untilIn(stream, request);
        await sent();
      }
      await within(response, "a response");
    },
    leave: async (_, request, sent) => {
      const stream = open(request);
      await untilIn(stream, request);
      await sent();
      stream.close(constants.NGHTTP2_CANCEL);
    },
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

describe.each([
  { name: "HTTP/1.1", http2: "listening", open: openHttp1Transport },
  { name: "HTTP/2 (mounted)", http2: "mounted", open: openHttp2Transport },
  { name: "HTTP/2", http2: "listening", open: openHttp2Transport },
] as const)("a partial body over $name", ({ http2, open }) => {
  test("is freed when its request is refused", async () => {
    const admissions: PromiseWithResolvers<void>[] = [];
    const events = new EventEmitter();
    const admit: Admit = () => {
      const admission = Promise.withResolvers<void>();
      admissions.push(admission);
      events.emit("admit");
      return admission.promise;
    };
    await using greenhouse = await startGreenhouse({}, { admit }, { http2 });
    // Less than any window, because no window is updated in the meantime.
    const request = requestWith(60_000);
    const refuseAll = async (transport: Transport): Promise<void> => {
      for (let at = 0; at < requests; at++)
        await transport.exchange(at, request, async () => {
          if (admissions.length === 0) await within(once(events, "admit"), "admit");
          admissions.shift()?.reject(new ConnectError("not you", Code.PermissionDenied));
        });
    };
    const limitBytes = (requests * 60_000) / 2;
    expect(await leastOf(() => heldAfter(open(greenhouse.address), refuseAll), limitBytes)).toBeLessThan(limitBytes);
  });

  test("is freed when the client disconnects during admission", async () => {
    const undecided = Promise.withResolvers<void>();
    const events = new EventEmitter();
    const admit: Admit = async () => (events.emit("admit"), await undecided.promise);
    await using greenhouse = await startGreenhouse({}, { admit }, { http2 });
    const request = requestWith(60_000);
    const leaveAll = async (transport: Transport): Promise<void> => {
      for (let at = 0; at < requests; at++) {
        const admission = once(events, "admit");
        await transport.leave(at, request, async () => void (await within(admission, "admit")));
      }
      await within(untilAlone(greenhouse), "the end of all requests");
    };
    const limitBytes = (requests * 60_000) / 2;
    expect(await leastOf(() => heldAfter(open(greenhouse.address), leaveAll), limitBytes)).toBeLessThan(limitBytes);
    undecided.resolve();
  });

  test("is freed when the deadline of its call expires", async () => {
    await using greenhouse = await startGreenhouse({}, {}, { http2 });
    const request = requestWith(200_000, ["connect-timeout-ms", "100"]);
    const askAll = async (transport: Transport): Promise<void> => {
      await Promise.all(Array.from({ length: requests }, (_, at) => transport.exchange(at, request)));
    };
    // Up to a tenth of a window may be in transit.
    const limitBytes = (requests * 200_000) / 2;
    expect(await leastOf(() => heldAfter(open(greenhouse.address), askAll), limitBytes)).toBeLessThan(limitBytes);
  });
});

async function untilAlone(greenhouse: TestGreenhouse): Promise<void> {
  while (greenhouse.openRequests() > 0) await nextTurn();
}

/** How much memory remains in use after requests, while their connection is still open. */
async function heldAfter(opened: Promise<Transport>, ask: (transport: Transport) => Promise<void>): Promise<number> {
  using transport = await opened;
  const beforeBytes = await retainedBytes();
  await ask(transport);
  return (await retainedBytes()) - beforeBytes;
}

const refuse: Admit = () => {
  throw new ConnectError("not you ".repeat(100), Code.PermissionDenied);
};

test.each(http2Servers)("a long body over HTTP/2 (%s) does not truncate a blocked response", async (http2) => {
  await using greenhouse = await startGreenhouse({}, { admit: refuse }, { http2 });
  using connection = await openFrames(greenhouse.address);
  connection.send(settingFrame(4, 10), headersFrame(1, grpcHeader("/nothing/here").slice(0, 4)));
  for (let sent = 0; sent < 300_000; sent += 10_000) connection.send(dataFrame(1, Buffer.alloc(10_000)));
  connection.send(windowUpdateFrame(1, 10_000));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
});

test.each(http2Servers)("a long body over HTTP/2 (%s) does not drop blocked trailers", async (http2) => {
  const ended = Promise.withResolvers<void>();
  const controlClimate = async function* () {
    yield { sensor: "s".repeat(100) };
    await ended.promise;
  };
  await using greenhouse = await startGreenhouse({ controlClimate }, {}, { http2 });
  using connection = await openFrames(greenhouse.address);
  // The 7 bytes in the envelope and the tag, and the data, fill the window, so node's trailers wait behind it.
  const header = grpcHeader("/greenhouse.v1.GreenhouseService/ControlClimate");
  connection.send(settingFrame(4, 107), headersFrame(1, header));
  await connection.readUntil(({ type }) => type === frameType.data);
  ended.resolve();
  await greenhouse.completed(1);
  for (let sent = 0; sent < 60_000; sent += 10_000) connection.send(dataFrame(1, Buffer.alloc(10_000)));
  connection.send(windowUpdateFrame(1, 1));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
});
