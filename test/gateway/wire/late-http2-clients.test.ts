import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "vitest";
import { within } from "../../support/deadline.ts";
import { startGreenhouse, waterBedProcedure } from "../../support/greenhouse.ts";
import { grpcHeader, sendUnaryCall } from "../../support/grpc-frames.ts";
import {
  clientPreface,
  dataFrame,
  frame,
  frameBytes,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
} from "../../support/http2-frames.ts";
import { settingFrame, windowUpdateFrame } from "../../support/http2-requests.ts";

const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
/** More than the windows of HTTP/2 have room for. */
const bigText = "plants".repeat(1_000_000);

async function* endless(): AsyncGenerator<{ sensor: string }> {
  for (;;) yield { sensor: bigText.slice(0, 100_000) };
}

describe.each(["node", "own"] as const)("on the engine %j a client of HTTP/2 that takes too long", (http2) => {
  test("to say anything: its connection is closed", async ({ expect }) => {
    await using greenhouse = await startGreenhouse({}, { limits: { idleTimeoutMs: 30 } }, { http2 });
    using connection = await openFrames(greenhouse.address);
    expect(await connection.readUntil(({ type }) => type === frameType.goAway)).toBeDefined();
    expect(await connection.readUntil(() => false)).toBeUndefined();
  });

  test("to send the rest of its body: it is reset", async ({ expect }) => {
    const limits = { idleTimeoutMs: 30, requestTimeoutMs: 60 };
    await using greenhouse = await startGreenhouse({}, { limits }, { http2 });
    using connection = await openFrames(greenhouse.address);
    connection.send(headersFrame(1, grpcHeader(waterBedProcedure)), dataFrame(1, Buffer.of(0)));
    expect((await connection.readEnd(1)).kind).not.toBe("answered");
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 0 });
  });

  test.for([
    { name: "an answer", procedure: waterBedProcedure },
    { name: "a stream of messages", procedure: "/greenhouse.v1.GreenhouseService/WatchReadings" },
  ])("to take $name: it is cut off, and its handler let go", async ({ procedure }, { expect }) => {
    const limits = { idleTimeoutMs: 60 };
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({ note: bigText }), watchReadings: endless },
      { limits },
      { http2 },
    );
    using connection = await openFrames(greenhouse.address);
    // Takes as much as HTTP/2's windows have room for at first, and no more; but it is alive, and says so.
    sendUnaryCall(connection, 1, procedure);
    const end = await connection.readUntil(({ type, flags, payload }) => {
      if (type === frameType.ping && flags === 0) connection.send(frame(frameType.ping, frameFlag.ack, 0, payload));
      return type === frameType.resetStream;
    });
    expect(end?.streamId).toBe(1);
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 200 });
  });

  // A second each, and all of it waiting, so they wait together.
  test.concurrent.for([
    { name: "after it has said GOAWAY", last: frame(frameType.goAway, 0, 0, Buffer.alloc(8)) },
    { name: "after it was told GOAWAY", last: ping },
    { name: "after it has broken a rule", last: dataFrame(0, Buffer.of(0)) },
  ])("to close its side $name: it is cut off", async ({ last }, { expect }) => {
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({}) },
      { limits: { idleTimeoutMs: 60 } },
      { http2 },
    );
    const { address: host, port } = greenhouse.address;
    const socket = connect({ host, port, allowHalfOpen: true }).resume();
    socket.on("error", () => {});
    const frames = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0), last];
    socket.write(Buffer.concat([clientPreface, ...frames.map(frameBytes)]));
    await within(once(socket, "end"), "the end of the server's side");
    // What is sent to a connection that is no more is answered with a reset.
    await expect.poll(() => socket.destroyed || (socket.write("x") && false)).toBe(true);
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    expect(await connection.readEnd(1)).toMatchObject({ kind: "answered" });
  });

  test("to read from its socket: its handler is let go, though nothing can be said to it any more", async ({
    expect,
  }) => {
    const limits = { idleTimeoutMs: 60 };
    await using greenhouse = await startGreenhouse({ watchReadings: endless }, { limits }, { http2 });
    using connection = await openFrames(greenhouse.address);
    connection.socket.pause();
    const most = 2 ** 31 - 1;
    connection.send(settingFrame(4, most), windowUpdateFrame(0, most - 65_535));
    sendUnaryCall(connection, 1, "/greenhouse.v1.GreenhouseService/WatchReadings");
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 200, error: { code: expect.any(Number) } });
  });

  test("is not one whose handler takes its time", async ({ expect }) => {
    const slow = Promise.withResolvers<{ bed: bigint }>();
    const limits = { idleTimeoutMs: 20, requestTimeoutMs: 20 };
    await using greenhouse = await startGreenhouse({ waterBed: () => slow.promise }, { limits }, { http2 });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    // Another connection is closed meanwhile, so the clocks do run.
    using silent = await openFrames(greenhouse.address);
    expect(await silent.readUntil(() => false)).toBeUndefined();
    slow.resolve({ bed: 7n });
    expect(await connection.readEnd(1)).toMatchObject({ kind: "answered", httpStatus: 200 });
  });
});
