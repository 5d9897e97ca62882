import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { frameType, pingFrame } from "../../../../testing/src/http/http2-frames.ts";
import { openEngine } from "../../../../testing/src/http2/http2-engine.ts";
import { answered, whole } from "../../../../testing/src/http2/http2-requests.ts";

test("a connection is not idle if a stream ends between two checks", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  await using connection = await openEngine({ limits: { idleTimeoutMs: 1000 } });
  for (const streamId of [1, 3, 5, 7]) {
    connection.send(whole(streamId));
    expect(await connection.readEnd(streamId)).toStrictEqual(answered);
    vi.advanceTimersByTime(250);
    await nextTurn();
  }
  connection.send(pingFrame);
  const next = await connection.readUntil(({ type }) => type === frameType.ping || type === frameType.goAway);
  expect(next?.type).toBe(frameType.ping);
});
