import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../src/http/exchange/index.ts";
import { type Backlog, BacklogBudget } from "../../src/engine/backlog.ts";
import { answer, openEngine } from "../../../testing/src/http2/http2-engine.ts";
import { goAwayWith, settingFrame, whole, windowUpdateFrame } from "../../../testing/src/http2/http2-requests.ts";
import { type FrameConnection, openFrames, openGreenhouse, sendUnaryCall, waterBedProcedure } from "@protoport/testing";

const kib = 1024;
const mib = 1024 * kib;

describe("BacklogBudget", () => {
  // Each step adds or removes KiB that a connection buffers.
  test.each<[name: string, steps: string, cut: string, held: number]>(
    // oxfmt-ignore
    [
      ["closes the first connection if no client has read anything", "a 50, b 40, c 11", "a", 51],
      ["closes the second connection if the first client has read some data", "a 50, b 40, a -16, c 27", "b", 61],
      ["closes the first connection if its client has read too little", "a 50, b 40, a -15, c 26", "a", 66],
      ["closes the second connection if the first client has once read everything", "a 50, b 40, a -50, a 60, c 1", "b",
        61],
      ["closes the first connection if its client has read too little recently", "a 50, b 40, a -16, b -16, a -1, c 44",
        "a", 68],
      ["closes the second connection if the first client emptied a small backlog", "a 15, b 40, a -15, a 60, c 1", "b",
        61],
      ["closes no connection at the limit", "a 50, b 40, c 10", "", 100],
      ["closes as many connections as necessary", "a 50, b 40, c 99", "ab", 99],
      ["closes the growing connection if it is the only connection", "a 101", "a", 0],
      ["closes each connection only once", "a 101, a 200, a -50, b 100", "a", 100],
    ],
  )("%s", (_name, steps, cut, held) => {
    const budget = new BacklogBudget(100 * kib);
    const cutOff: string[] = [];
    const open = (name: string): Backlog => budget.open({ writableLength: 0 }, () => cutOff.push(name));
    const backlogs = new Map(["a", "b", "c"].map((name) => [name, open(name)]));
    for (const [who = "", change] of steps.split(", ").map((step) => step.split(" "))) {
      const backlog = backlogs.get(who);
      if (backlog === undefined) throw new TypeError(`no connection is named "${who}"`);
      if (Number(change) > 0) backlog.add(Number(change) * kib);
      else backlog.remove(-Number(change) * kib);
    }
    expect([cutOff.join(""), budget.bytes]).toEqual([cut, held * kib]);
    // A connection that was cut off holds nothing, even if more is added or removed later.
    expect([...backlogs.values()].reduce((sum, { bytes }) => sum + bytes, 0)).toBe(budget.bytes);
  });

  test.each([
    ["closes no connection if the first socket has sent everything", 50, [], 80 * kib],
    ["closes the first connection if its socket has sent too little", 15, ["a"], 80 * kib],
    ["closes the second connection if the first socket has sent some data", 16, ["b"], 34 * kib],
  ])("%s, according to writableLength", (_name, sentKib, cut, bytes) => {
    const budget = new BacklogBudget(100 * kib);
    const cutOff: string[] = [];
    const socket = { writableLength: 50 * kib };
    budget.open(socket, () => cutOff.push("a")).count(socket.writableLength);
    const other = budget.open({ writableLength: 0 }, () => cutOff.push("b"));
    socket.writableLength -= sentKib * kib;
    other.add(80 * kib);
    expect(cutOff).toEqual(cut);
    expect(budget.bytes).toBe(bytes);
  });

  test("closes the growing connection if it holds more than 16 MiB", () => {
    const budget = new BacklogBudget(20 * mib);
    const cutOff: string[] = [];
    const open = (name: string): Backlog => budget.open({ writableLength: 0 }, () => cutOff.push(name));
    const [small, large] = [open("small"), open("large")];
    small.add(4 * mib);
    large.add(16 * mib);
    expect(cutOff).toStrictEqual([]);
    large.add(1);
    expect([cutOff, budget.bytes]).toStrictEqual([["large"], 4 * mib]);
  });
});

test("the stall time of a client starts when its socket buffers data", () => {
  const socket = { writableLength: 0 };
  const backlog = new BacklogBudget(100 * kib).open(socket, () => undefined);
  socket.writableLength = kib;
  expect(backlog.stalledMs(performance.now())).toBeLessThanOrEqual(0);
});

/** Requests a response that is not read, and waits until the server holds it. */
async function leaveAnswer(connection: FrameConnection): Promise<void> {
  await connection.settle(settingFrame(4, 0), whole(1));
}

test("a queued response is dropped when another connection exceeds the limit", async () => {
  const budget = new BacklogBudget(1500);
  await using first = await openEngine({ budget, serve: (stream) => answer(stream, Buffer.alloc(1000)) });
  using second = await openFrames(first.engine.address);
  await leaveAnswer(first);
  await leaveAnswer(second);
  expect(await first.readEnd(1)).toStrictEqual({ ...goAwayWith(ErrorCode.enhanceYourCalm), httpStatus: 0 });
  second.send(windowUpdateFrame(1, 1000));
  expect([await second.readEnd(1), budget.bytes]).toMatchObject([{ kind: "responded" }, 0]);
});

test("a gateway closes a connection whose unread response exceeds limits.backlogBytes", async () => {
  const handlers = { waterBed: () => ({ note: "n".repeat(2000) }) };
  await using connection = await openGreenhouse(openFrames, handlers, { limits: { backlogBytes: 1500 } });
  connection.send(settingFrame(4, 0));
  sendUnaryCall(connection, 1, waterBedProcedure);
  expect(await connection.readEnd(1)).toStrictEqual({ ...goAwayWith(ErrorCode.enhanceYourCalm), httpStatus: 200 });
});
