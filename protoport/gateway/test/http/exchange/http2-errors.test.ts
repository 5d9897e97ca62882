import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { within } from "@protoport/testing/process";
import { openGreenhouse, startGreenhouse, waterBedProcedure } from "../../../../testing/src/gateway/greenhouse.ts";
import { openFrames, resetFrame, sendUnaryCall } from "@protoport/testing/http";
import { windowUpdateFrame } from "../../../../testing/src/http2/http2-requests.ts";
import { http2Servers } from "../../../../testing/src/gateway/listen-for-tests.ts";

// Tests the error of a call whose stream is reset, for each error code (RFC 9113 §7).

const never: Promise<never> = new Promise(() => {});

describe.each(http2Servers)("an HTTP/2 call (%s)", (http2) => {
  // Node's HTTP/2 does not report which side has reset a stream, and attributes framing errors to the client.
  const accused = http2 === "listening" ? Code.Internal : Code.InvalidArgument;

  test.each([
    { name: "NO_ERROR", errorCode: 0x0, code: Code.Canceled },
    { name: "PROTOCOL_ERROR", errorCode: 0x1, code: accused },
    // Envoy sends this when its own client disconnects.
    { name: "INTERNAL_ERROR", errorCode: 0x2, code: Code.Canceled },
    { name: "FLOW_CONTROL_ERROR", errorCode: 0x3, code: accused },
    { name: "SETTINGS_TIMEOUT", errorCode: 0x4, code: accused },
    { name: "STREAM_CLOSED", errorCode: 0x5, code: http2 === "listening" ? Code.Canceled : accused },
    { name: "FRAME_SIZE_ERROR", errorCode: 0x6, code: accused },
    { name: "REFUSED_STREAM", errorCode: 0x7, code: Code.Canceled },
    { name: "CANCEL", errorCode: 0x8, code: Code.Canceled },
    { name: "COMPRESSION_ERROR", errorCode: 0x9, code: accused },
    { name: "CONNECT_ERROR", errorCode: 0xa, code: Code.Canceled },
    { name: "ENHANCE_YOUR_CALM", errorCode: 0xb, code: Code.ResourceExhausted },
    { name: "INADEQUATE_SECURITY", errorCode: 0xc, code: accused },
    { name: "HTTP_1_1_REQUIRED", errorCode: 0xd, code: Code.Canceled },
    { name: "an undefined code", errorCode: 0xff, code: Code.Canceled },
  ])("fails with the gRPC code for $name when its stream is reset", async ({ errorCode, code }) => {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<unknown>();
    const handlers: Parameters<typeof startGreenhouse>[0] = {
      waterBed: (_, { signal }) => {
        signal.addEventListener("abort", () => ended.resolve(signal.reason));
        started.resolve();
        return never;
      },
    };
    await using greenhouse = await startGreenhouse(handlers, {}, { http2 });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    await within(started.promise, "the handler");
    connection.send(resetFrame(1, errorCode));
    expect(await within(ended.promise, "the end of the call")).toMatchObject({ code });
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code } });
  });
});

test("a stream error for an invalid frame is reported as a client error", async () => {
  const started = Promise.withResolvers<void>();
  const waterBed = async (): Promise<never> => (started.resolve(), await never);
  await using connection = await openGreenhouse(openFrames, { waterBed });
  sendUnaryCall(connection, 1, waterBedProcedure);
  await within(started.promise, "the handler");
  // An increment of 0 is a PROTOCOL_ERROR (RFC 9113 §6.9).
  connection.send(windowUpdateFrame(1, 0));
  const error = { code: Code.InvalidArgument, rawMessage: "HTTP/2 error caused by the client: PROTOCOL_ERROR" };
  expect(await connection.greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error });
});
