import { describe, expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../gateway/src/exchange/limits.ts";
import { lingerMsMax, retiredIdleMs } from "../../../gateway/src/exchange/index.ts";
import { Deadlines, type Due, type Waited } from "../../src/http1/deadlines.ts";

const lookEveryMs = 1_000;
const waited: Waited = {
  stage: "answer",
  headBegun: false,
  retired: false,
  clientEnded: false,
  canProbe: false,
  begun: false,
  congested: false,
  stalledMs: 0,
};

/** Looks at a wait until something is to be done, and returns what, and after how many milliseconds. */
function firstDue(wait: Partial<Waited>, ms: number, limits: Partial<Limits> = {}): readonly [Due, number] {
  const deadlines = new Deadlines({ ...defaultLimits, ...limits }, lookEveryMs);
  for (let waitedMs = 0; waitedMs <= ms; waitedMs += lookEveryMs) {
    const due = deadlines.look({ ...waited, ...wait });
    if (due !== "nothing") return [due, waitedMs];
  }
  return ["nothing", ms];
}

const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = defaultLimits;

describe("a connection of HTTP/1.1 that waits", () => {
  test.each<[name: string, wait: Partial<Waited>, want: readonly [Due, number]]>([
    ["for a request is ended when it is idle", { stage: "head" }, ["end", idleTimeoutMs]],
    ["for a request, and is old, is ended soon", { stage: "head", retired: true }, ["end", retiredIdleMs]],
    ["for a head, and is old, goes on", { stage: "head", headBegun: true, retired: true }, ["refuse", headerTimeoutMs]],
    ["for a head", { stage: "head", headBegun: true }, ["refuse", headerTimeoutMs]],
    ["for a body", { stage: "body" }, ["refuse", requestTimeoutMs]],
    ["for a client to end its side", { stage: "over" }, ["cut", lingerMsMax]],
    ["for a client to take its answer cuts it off", { congested: true, stalledMs: idleTimeoutMs }, ["cut", 0]],
    [
      "for a client to take its answer goes on while it takes some",
      { congested: true, stalledMs: idleTimeoutMs - 1 },
      ["nothing", 3_600_000],
    ],
    ["for a slow handler goes on", {}, ["nothing", 3_600_000]],
    [
      "for a handler asks a client that has ended its side",
      { clientEnded: true, canProbe: true },
      ["probe", lookEveryMs],
    ],
    [
      "for a handler gives a client of HTTP/1.0 that has ended its side a while",
      { clientEnded: true },
      ["refuse", lingerMsMax],
    ],
    [
      "for more of an answer gives up a client that has ended its side",
      { clientEnded: true, begun: true },
      ["refuse", lookEveryMs],
    ],
  ])("%s", (_, wait, want) => {
    expect(firstDue(wait, want[1])).toEqual(want);
  });

  // Milliseconds of which a look is late by none.
  const [brief, long] = [2 * lookEveryMs, 8 * lookEveryMs];
  test.each<[name: string, limits: Partial<Limits>, wait: Partial<Waited>, want: readonly [Due, number]]>([
    [
      "for the end of a client has no longer than a request",
      { requestTimeoutMs: brief },
      { stage: "over" },
      ["cut", brief],
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
      ["end", 0],
    ],
  ])("%s", (_, limits, wait, want) => {
    expect(firstDue(wait, long, limits)).toEqual(want);
  });

  test("for a request has all its time behind an answer that was taken late", () => {
    const deadlines = new Deadlines(defaultLimits, lookEveryMs);
    for (let waitedMs = 0; waitedMs <= idleTimeoutMs; waitedMs += lookEveryMs) {
      expect(deadlines.look({ ...waited, stage: "head", congested: true })).toBe("nothing");
    }
    expect(deadlines.look({ ...waited, stage: "head" })).toBe("nothing");
  });

  test("begins anew with each sign of life", () => {
    const deadlines = new Deadlines(defaultLimits, lookEveryMs);
    for (let looks = 0; looks < 100; looks += 1) {
      expect(deadlines.look({ ...waited, clientEnded: true })).toBe("nothing");
      if (looks % 10 === 9) deadlines.restart();
    }
  });
});
