import { setImmediate as nextTurn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type Reading, ReadingSchema } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { within } from "../support/deadline.ts";
import { encodeEnvelope } from "../support/gateway/envelope.ts";
import type { Field } from "../support/carriers/exchange.ts";
import { grpcHeader } from "../support/carriers/grpc-frames.ts";
import { startGreenhouse } from "../support/gateway/greenhouse.ts";
import {
  dataFrame,
  frame,
  type Frame,
  type FrameConnection,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
} from "../support/carriers/http2-frames.ts";
import { windowUpdateFrame } from "../support/http2/http2-requests.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import { http2Servers } from "../support/gateway/listen-for-tests.ts";

// Streams that are far larger than what may be held of them: as long as their reader is slow, their writer waits.

const messages = 512;
const sensor = "s".repeat(64 * 1024);
/** Windows of 256 KiB, what a socket takes, a message or two, and the test's own. A quarter of what goes through. */
const heldBytesMax = 8 * 1024 * 1024;
const samples = 4;
const message = encodeEnvelope(0, toBinary(ReadingSchema, create(ReadingSchema, { sensor })));

/** Looks at the memory now and then, and remembers the most that there was beyond what was there before. */
class Gauge {
  readonly #beforeBytes: number;
  #calls = 0;
  mostBytes = 0;

  constructor(beforeBytes: number) {
    this.#beforeBytes = beforeBytes;
  }

  async look(): Promise<void> {
    this.#calls += 1;
    if (this.#calls % (messages / samples) !== 0) return;
    this.mostBytes = Math.max(this.mostBytes, (await heldBytes()) - this.#beforeBytes);
  }
}

function header(rpc: string): Field[] {
  return grpcHeader(`/greenhouse.v1.GreenhouseService/${rpc}`);
}

/** Sends DATA as far as the windows are open, and tells when they stay closed. */
class Uploader {
  readonly #connection: FrameConnection;
  readonly #blocked: () => void;
  #streamWindow = 65_535;
  #connectionWindow = 65_535;

  constructor(connection: FrameConnection, blocked: () => void) {
    this.#connection = connection;
    this.#blocked = blocked;
  }

  async send(bytes: Buffer, endStream: boolean): Promise<void> {
    for (let at = 0; at < bytes.byteLength;) {
      const most = Math.min(this.#streamWindow, this.#connectionWindow, 16_384, bytes.byteLength - at);
      if (most > 0) {
        const last = endStream && at + most === bytes.byteLength;
        this.#connection.send(dataFrame(1, bytes.subarray(at, at + most), last ? frameFlag.endStream : 0));
        this.#streamWindow -= most;
        this.#connectionWindow -= most;
        at += most;
      } else await this.#wait();
    }
  }

  async #wait(): Promise<void> {
    // What the server grants by itself is here before the answer to a PING.
    this.#connection.send(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    while (!(await this.#read())) continue;
    if (this.#streamWindow > 0 && this.#connectionWindow > 0) return;
    this.#blocked();
    await this.#read();
  }

  /** Takes a frame, and says whether it is the answer to a PING. */
  async #read(): Promise<boolean> {
    const next = await this.#connection.readFrame();
    if (next === undefined) throw new Error("the connection has ended");
    this.#take(next);
    return next.type === frameType.ping && next.flags === frameFlag.ack;
  }

  #take({ type, flags, streamId, payload }: Frame): void {
    if (type === frameType.settings && flags === 0) this.#streamWindow += initialWindow(payload) - 65_535;
    if (type !== frameType.windowUpdate) return;
    if (streamId === 0) this.#connectionWindow += payload.readUInt32BE(0);
    else this.#streamWindow += payload.readUInt32BE(0);
  }
}

function initialWindow(settings: Buffer): number {
  for (let at = 0; at < settings.byteLength; at += 6) {
    if (settings.readUInt16BE(at) === 4) return settings.readUInt32BE(at + 2);
  }
  return 65_535;
}

describe.each(http2Servers)("of 32 MiB over HTTP/2, %s, a quarter is held at most", (http2) => {
  test("when a client sends them to a slow handler", async () => {
    const gauge = new Gauge(await heldBytes());
    const blocked = Promise.withResolvers<void>();
    const done = Promise.withResolvers<number>();
    await using greenhouse = await startGreenhouse(
      {
        recordReadings: async (readings: AsyncIterable<Reading>) => {
          // Until the client can send no more; if nothing held it back, all would be here by then.
          await blocked.promise;
          let bytes = 0;
          for await (const reading of readings) {
            bytes += reading.sensor.length;
            await gauge.look();
            await nextTurn();
          }
          done.resolve(bytes);
          return {};
        },
      },
      {},
      { http2 },
    );
    using connection = await openFrames(greenhouse.address);
    connection.send(headersFrame(1, header("RecordReadings")));
    const uploader = new Uploader(connection, blocked.resolve);
    for (let i = 1; i <= messages; i++) await uploader.send(message, i === messages);
    blocked.resolve();
    expect(await within(done.promise, "the last message")).toBe(messages * sensor.length);
    expect(gauge.mostBytes).toBeLessThan(heldBytesMax);
  });

  test("when a handler sends them to a slow client", async () => {
    const gauge = new Gauge(await heldBytes());
    await using greenhouse = await startGreenhouse(
      {
        watchReadings: async function* () {
          for (let i = 0; i < messages; i++) {
            await gauge.look();
            yield { sensor };
          }
        },
      },
      {},
      { http2 },
    );
    using connection = await openFrames(greenhouse.address);
    connection.send(headersFrame(1, header("WatchReadings")), dataFrame(1, encodeEnvelope(0, Buffer.of()), 1));
    let bytes = 0;
    let ungranted = 0;
    for (;;) {
      const next = await connection.readFrame();
      if (next === undefined) throw new Error("the connection has ended");
      if (next.type === frameType.headers && (next.flags & frameFlag.endStream) !== 0) break;
      const { byteLength } = next.payload;
      if (next.type !== frameType.data || byteLength === 0) continue;
      bytes += byteLength;
      ungranted += byteLength;
      // By halves of a window, as clients do: to grant what each frame took makes the frames ever smaller.
      if (ungranted < 32_768) continue;
      await nextTurn();
      connection.send(windowUpdateFrame(0, ungranted), windowUpdateFrame(1, ungranted));
      ungranted = 0;
    }
    expect(bytes).toBe(messages * message.byteLength);
    expect(gauge.mostBytes).toBeLessThan(heldBytesMax);
  });
});
