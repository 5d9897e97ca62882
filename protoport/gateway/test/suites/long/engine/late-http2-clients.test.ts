import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "vitest";
// oxfmt-ignore
import { clientPreface, dataFrame, frame, frameBytes, frameFlag, frameType, grpcHeader, headersFrame, http2Servers,
  openFrames, pingFrame, sendUnaryCall, startGreenhouse, waterBedProcedure, within } from "@protoport/testing";

/** Short, but longer than a request takes on a busy machine, so that no request is late by accident. */
const idleTimeoutMs = 500;

/** More than HTTP/2's windows admit. */
const bigText = "orders".repeat(1_000_000);

// The tests only wait, so they run concurrently.
describe.concurrent("a slow HTTP/2 client", () => {
  test("that does not read a response is disconnected, and its call completes", async ({ expect }) => {
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({ note: bigText }) },
      { limits: { idleTimeoutMs } },
    );
    using connection = await openFrames(greenhouse.address);
    // Reads only as much as HTTP/2's initial windows admit, but acknowledges PINGs.
    sendUnaryCall(connection, 1, waterBedProcedure);
    const end = await connection.readUntil(({ type, flags, payload }) => {
      if (type === frameType.ping && flags === 0) connection.send(frame(frameType.ping, frameFlag.ack, 0, payload));
      return type === frameType.resetStream;
    });
    expect([end?.streamId, await greenhouse.completed(1)]).toMatchObject([1, { httpStatus: 200 }]);
  });

  test.for([
    { name: "after sending GOAWAY", last: frame(frameType.goAway, 0, 0, Buffer.alloc(8)) },
    { name: "after receiving GOAWAY", last: pingFrame },
    { name: "after a protocol error", last: dataFrame(0, Buffer.of(0)) },
  ])("that does not close its side $name is disconnected", async ({ last }, { expect }) => {
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { limits: { idleTimeoutMs } });
    const { address: host, port } = greenhouse.address;
    const socket = connect({ host, port, allowHalfOpen: true }).resume();
    socket.on("error", () => {});
    const frames = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0), last];
    socket.write(Buffer.concat([clientPreface, ...frames.map(frameBytes)]));
    await within(once(socket, "end"), "the end of the server's side");
    // The system resets a connection that no longer exists.
    await expect.poll(() => socket.destroyed || (socket.write("x") && false)).toBe(true);
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
  });

  test.for(http2Servers)(
    "that does not end its request is reset after the response (%s)",
    async (http2, { expect }) => {
      await using greenhouse = await startGreenhouse({ recordReadings: async () => ({}) }, {}, { http2 });
      using connection = await openFrames(greenhouse.address);
      connection.send(headersFrame(1, grpcHeader("/greenhouse.v1.GreenhouseService/RecordReadings")));
      expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
      connection.send(...[1, 2, 3].map(() => dataFrame(1, Buffer.alloc(16_000))));
      expect(await connection.readEnd(1)).toMatchObject({ kind: "reset", errorCode: 0 });
      await expect.poll(() => greenhouse.openRequests()).toBe(0);
    },
  );
});
