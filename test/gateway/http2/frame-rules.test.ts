import { describe, expect, test } from "vitest";
import { startEngine } from "../../support/http2-engine.ts";
import { connectionRows } from "../../support/http2-connection-rows.ts";
import { openFrames } from "../../support/http2-frames.ts";
import { answered, echoUnlessHeld, whole, windowUpdateFrame } from "../../support/http2-requests.ts";
import { streamRows } from "../../support/http2-stream-rows.ts";

const limits = { concurrentStreams: 5, streamWindowBytes: 65_535, connectionWindowBytes: 131_070 };

describe("the engine takes or refuses, and goes on behind,", () => {
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

describe("the engine ends the connection for", () => {
  test.each(connectionRows)("$name", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(...sent);
    expect(await connection.readEnd(1)).toStrictEqual(want);
    expect(await connection.readUntil(() => false)).toBeUndefined();
  });
});
