import { describe, expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../gateway/src/exchange/limits.ts";
import { lingerMsMax, retiredIdleMs } from "../../../gateway/src/exchange/index.ts";
import { Deadlines, type DueAction, type ConnectionState } from "../../src/http1/deadlines.ts";

const timeoutCheckIntervalMs = 1_000;
const waited: ConnectionState = {
  stage: "response",
  headBegun: false,
  retired: false,
  clientEnded: false,
  canProbe: false,
  begun: false,
  congested: false,
  stalledMs: 0,
};

/** Looks at a wait until something is to be done, and returns what, and after how many milliseconds. */
function firstDue(wait: Partial<ConnectionState>, ms: number, limits: Partial<Limits> = {}): readonly [DueAction, number] {
  const deadlines = new Deadlines({ ...defaultLimits, ...limits }, timeoutCheckIntervalMs);
  for (let waitedMs = 0; waitedMs <= ms; waitedMs += timeoutCheckIntervalMs) {
    const due = deadlines.check({ ...waited, ...wait });
    if (due !== "nothing") return [due, waitedMs];
  }
  return ["nothing", ms];
}

const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = defaultLimits;

describe("a connection of HTTP/1.1 that waits", () => {
  test.each<[name: string, wait: Partial<ConnectionState>, want: readonly [DueAction, number]]>([
    ["for a request is ended when it is idle", { stage: "head" }, ["close", idleTimeoutMs]],
    ["for a request, and is old, is ended soon", { stage: "head", retired: true }, ["close", retiredIdleMs]],
    ["for a head, and is old, goes on", { stage: "head", headBegun: true, retired: true }, ["refuse", headerTimeoutMs]],
    ["for a head", { stage: "head", headBegun: true }, ["refuse", headerTimeoutMs]],
    ["for a body", { stage: "body" }, ["refuse", requestTimeoutMs]],
    ["for a client to end its side", { stage: "closed" }, ["destroy", lingerMsMax]],
    ["for a client to take its answer cuts it off", { congested: true, stalledMs: idleTimeoutMs }, ["destroy", 0]],
    [
      "for a client to take its answer goes on while it takes some",
      { congested: true, stalledMs: idleTimeoutMs - 1 },
      ["nothing", 3_600_000],
    ],
    ["for a slow handler goes on", {}, ["nothing", 3_600_000]],
    [
      "for a handler asks a client that has ended its side",
      { clientEnded: true, canProbe: true },
      ["probe", timeoutCheckIntervalMs],
    ],
    [
      "for a handler gives a client of HTTP/1.0 that has ended its side a while",
      { clientEnded: true },
      ["refuse", lingerMsMax],
    ],
    [
      "for more of an answer gives up a client that has ended its side",
      { clientEnded: true, begun: true },
      ["refuse", timeoutCheckIntervalMs],
    ],
  ])("%s", (_, wait, want) => {
    expect(firstDue(wait, want[1])).toEqual(want);
  });

  // Milliseconds of which a look is late by none.
  const [brief, long] = [2 * timeoutCheckIntervalMs, 8 * timeoutCheckIntervalMs];
  test.each<[name: string, limits: Partial<Limits>, wait: Partial<ConnectionState>, want: readonly [DueAction, number]]>([
    [
      "for the end of a client has no longer than a request",
      { requestTimeoutMs: brief },
      { stage: "closed" },
      ["destroy", brief],
    ],
    [
      "for a head has no longer than a request",
      { requestTimeoutMs: brief, headerTimeoutMs: long },
      { stage: "head", headBegun: true },
      ["refuse", brief],
    ],
    [
      "for a request, and is old, has no longer than any other",
      { idleTimeoutMs: 0 },
      { stage: "head", retired: true, stalledMs: -1 },
      ["close", 0],
    ],
  ])("%s", (_, limits, wait, want) => {
    expect(firstDue(wait, long, limits)).toEqual(want);
  });

  test("for a request has all its time behind an answer that was taken late", () => {
    const deadlines = new Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let waitedMs = 0; waitedMs <= idleTimeoutMs; waitedMs += timeoutCheckIntervalMs) {
      expect(deadlines.check({ ...waited, stage: "head", congested: true })).toBe("nothing");
    }
    expect(deadlines.check({ ...waited, stage: "head" })).toBe("nothing");
  });

  test("begins anew with each sign of life", () => {
    const deadlines = new Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let looks = 0; looks < 100; looks += 1) {
      expect(deadlines.check({ ...waited, clientEnded: true })).toBe("nothing");
      if (looks % 10 === 9) deadlines.restart();
    }
  });
});
