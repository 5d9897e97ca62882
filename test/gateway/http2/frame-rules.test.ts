import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/gateway/carriers/index.ts";
import { startEngine } from "../../support/http2/http2-engine.ts";
import { connectionRows } from "../../support/http2/http2-connection-rows.ts";
import { clientPreface, frame, frameFlag, frameType, openFrames } from "../../support/carriers/http2-frames.ts";
import { answered, echoUnlessHeld, goAwayWith, whole, windowUpdateFrame } from "../../support/http2/http2-requests.ts";
import { streamRows } from "../../support/http2/http2-stream-rows.ts";

const limits = { concurrentStreams: 5, streamWindowBytes: 65_535, connectionWindowBytes: 131_070 };

describe("the engine does as the standard says, and goes on, after", () => {
  test.each(streamRows)("$name", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(...sent);
    const streamId = sent.some((one) => (one.streamId & 0x7fff_ffff) === 1) ? 1 : 11;
    expect(await connection.readEnd(streamId)).toStrictEqual(want);
    connection.send(windowUpdateFrame(0, 10), whole(99));
    expect(await connection.readEnd(99)).toStrictEqual(answered);
  });
});

describe("the engine ends a connection that begins with (§3.4)", () => {
  const { settings, ping } = frameType;
  test.each([
    { name: "an acknowledgement of SETTINGS", sent: frame(settings, frameFlag.ack, 0) },
    { name: "a PING", sent: frame(ping, 0, 0, Buffer.alloc(8)) },
    { name: "a request", sent: whole(1) },
  ])("$name", async ({ sent }) => {
    await using engine = await startEngine();
    using connection = await openFrames(engine.address, { settled: false });
    connection.socket.write(clientPreface);
    connection.send(sent, frame(settings, 0, 0));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.protocolError));
  });
});

describe("the engine ends the connection for", () => {
  test.each(connectionRows)("$name", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(...sent);
    expect(await connection.readEnd(1)).toStrictEqual(want);
    expect(await connection.readUntil(() => false)).toBeUndefined();
  });
});
