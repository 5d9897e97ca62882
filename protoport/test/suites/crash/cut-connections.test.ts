import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, clientPreface, dataFrame, frame, frameBytes, frameFlag, frameType,
  getReadingProcedure, grpcHeader, headersFrame, startGreenhouse, waterBedProcedure, within } from "@protoport/testing";
import { emptyMessage } from "@protoport/testing/http";
import { expectNothingKept } from "../../../testing/src/http/leaks.ts";

/** The connections that must not leak, and connections before them, which warm up permanent caches. */
const connections = 4000;
const warmUpConnections = 1000;
const concurrentConnections = 20;

/** A leak per connection is at least a socket or a session, some kilobytes. 200 bytes each are heap noise. */
const growthLimitBytes = connections * 200;

function http2Call(streamId: number, procedure: string): Buffer[] {
  const header = headersFrame(streamId, [...grpcHeader(procedure), ["grpc-timeout", "1H"]]);
  return [frameBytes(header), frameBytes(dataFrame(streamId, emptyMessage, frameFlag.endStream))];
}

function http1Call(procedure: string): Buffer {
  const head = [
    `POST ${procedure} HTTP/1.1`,
    "host: x",
    "content-type: application/json",
    "connect-timeout-ms: 3600000",
  ];
  return Buffer.from([...head, "content-length: 2", "", "{}"].join("\r\n"));
}

// The first call gets a response, the second runs until it is cancelled, and the third follows the running call.
const procedures = [getReadingProcedure, waterBedProcedure, getReadingProcedure];

// oxfmt-ignore
const conversations = [
  { name: "HTTP/1.1", bytes: Buffer.concat(procedures.map(http1Call)) },
  { name: "HTTP/2", bytes: Buffer.concat([
      clientPreface,
      frameBytes(frame(frameType.settings, 0, 0)),
      ...procedures.flatMap((procedure, at) => http2Call(2 * at + 1, procedure)),
    ]) },
] as const;

// Node's warnings about too many listeners on one object, which show that listeners are never removed.
const warnings: Error[] = [];
const warn = (warning: Error): void => void warnings.push(warning);
beforeAll(() => void process.on("warning", warn));
afterAll(() => void process.off("warning", warn));

test.each(conversations)(
  `${String(connections)} connections over $name leak nothing when cut at any point`,
  { timeout: 300_000 },
  async ({ bytes }) => {
    let running = 0;
    await using greenhouse = await startGreenhouse(
      {
        getReading: () => ({}),
        waterBed: async (_, { signal }) => {
          running += 1;
          if (!signal.aborted)
            await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          running -= 1;
          return {};
        },
      },
      { onResponse: () => {} },
    );

    await cutConnections(greenhouse.address, bytes, warmUpConnections);
    await expectNothingKept(() => cutConnections(greenhouse.address, bytes, connections), growthLimitBytes);
    expect([running, warnings]).toEqual([0, []]);
  },
);

/** Opens connections, sends a little more of a conversation on each than on the previous one, and cuts them all. */
async function cutConnections(address: Address, bytes: Buffer, count: number): Promise<void> {
  for (let done = 0; done < count; done += concurrentConnections) {
    const portions = Array.from({ length: concurrentConnections }, (_, at) =>
      bytes.subarray(0, (done + at) % (bytes.byteLength + 1)),
    );
    await Promise.all(portions.map((portion) => cutAfter(address, portion)));
  }
}

async function cutAfter(address: Address, portion: Buffer): Promise<void> {
  const socket = connect({ host: address.address, port: address.port, noDelay: true });
  socket.on("error", () => {}).resume();
  await within(once(socket, "connect"), "a connection");
  await new Promise((resolve) => socket.write(portion, resolve));
  // Every second connection is cut once the server has responded, and the rest as soon as the bytes are sent.
  if (portion.byteLength % 2 === 0) await new Promise(setImmediate);
  socket.resetAndDestroy();
}
