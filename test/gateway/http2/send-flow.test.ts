import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { defaultHttp2Limits, QueueBudget } from "../../../src/gateway/http2/index.ts";
import { answer, receiving, startEngine } from "../../support/http2-engine.ts";
import { frame, frameFlag, frameType, openFrames, resetFrame } from "../../support/http2-frames.ts";
import { answered, settingFrame, whole, windowUpdateFrame } from "../../support/http2-requests.ts";

const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
const { blockedTimeoutMs, stallTimeoutMs } = defaultHttp2Limits;

describe("what waits to be sent", () => {
  test("waits until a window that was taken below nought is above it again (§6.9.2)", async () => {
    await using engine = await startEngine({ serve: (stream) => answer(stream, Buffer.from("abcd")) });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 2), whole(1));
    await connection.readUntil(({ type }) => type === frameType.data);
    // The window was 0, is -2, and becomes 0 again, which lets nothing through; and then 1.
    connection.send(settingFrame(4, 0), windowUpdateFrame(1, 2), ping);
    const next = await connection.readUntil(({ type }) => type === frameType.data || type === frameType.ping);
    expect(next?.type).toBe(frameType.ping);
    connection.send(windowUpdateFrame(1, 1));
    const data = await connection.readUntil(({ type }) => type === frameType.data);
    expect(data).toMatchObject({ flags: 0, payload: Buffer.from("c") });
    connection.send(windowUpdateFrame(1, 1));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "answered" });
  });

  test.each([
    { name: "taken", end: [windowUpdateFrame(1, 1000)] },
    { name: "given up", end: [resetFrame(1, 8)] },
  ])("is counted until it is $name", async ({ end }) => {
    const budget = new QueueBudget(100_000);
    await using engine = await startEngine({ budget, serve: (stream) => answer(stream, Buffer.alloc(1000)) });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 0), whole(1), ping);
    await connection.readUntil(({ type }) => type === frameType.ping);
    expect(budget.bytes).toBe(1000);
    connection.send(...end, ping);
    await connection.readUntil(({ type }) => type === frameType.ping);
    expect(budget.bytes).toBe(0);
  });

  test("is counted until its connection is over", async () => {
    const budget = new QueueBudget(100_000);
    await using engine = await startEngine({ budget, serve: (stream) => answer(stream, Buffer.alloc(1000)) });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 0), whole(1), whole(3), ping);
    await connection.readUntil(({ type }) => type === frameType.ping);
    expect(budget.bytes).toBe(2000);
    connection.socket.destroy();
    await expect.poll(() => budget.bytes).toBe(0);
  });
});

describe("an answer is stalled", () => {
  test.each([
    { name: "when nothing of it was taken for long", budgetBytes: 100_000, afterMs: blockedTimeoutMs, stalled: 1 },
    { name: "not before", budgetBytes: 100_000, afterMs: blockedTimeoutMs - 5000, stalled: 0 },
    { name: "sooner where memory is scarce", budgetBytes: 2000, afterMs: stallTimeoutMs, stalled: 1 },
    { name: "not at once also then", budgetBytes: 2000, afterMs: stallTimeoutMs - 5000, stalled: 0 },
  ])("$name", async ({ budgetBytes, afterMs, stalled }) => {
    const budget = new QueueBudget(budgetBytes);
    await using engine = await startEngine({ budget, serve: (stream) => answer(stream, Buffer.alloc(1000)) });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 0), whole(1), ping);
    await connection.readUntil(({ type }) => type === frameType.ping);
    const [first] = engine.connections;
    expect(first?.sendFlow.stalled(performance.now() + afterMs)).toHaveLength(stalled);
  });

  test("not while its reader goes on, however slowly", async () => {
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        answer(stream, Buffer.alloc(1000));
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 0), whole(1), ping);
    await connection.readUntil(({ type }) => type === frameType.ping);
    const waitingAtMs = performance.now();
    while (performance.now() < waitingAtMs + 5) await nextTurn();
    connection.send(windowUpdateFrame(1, 1), ping);
    await connection.readUntil(({ type, flags }) => type === frameType.ping && flags === frameFlag.ack);
    const [first] = engine.connections;
    expect(first?.sendFlow.stalled(waitingAtMs + blockedTimeoutMs + 4)).toStrictEqual([]);
    connection.send(windowUpdateFrame(1, 999), whole(3), windowUpdateFrame(3, 1000));
    expect(await connection.readEnd(3)).toStrictEqual(answered);
  });
});
