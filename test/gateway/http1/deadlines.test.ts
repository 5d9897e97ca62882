import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../../src/gateway/carriers/limits.ts";
import { Deadlines, type Due, lingerMsMax, retiredIdleMs, type Waited } from "../../../src/gateway/http1/deadlines.ts";

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
function firstDue(wait: Partial<Waited>, ms: number): readonly [Due, number] {
  const deadlines = new Deadlines(defaultLimits, lookEveryMs);
  for (let waitedMs = 0; waitedMs <= ms; waitedMs += lookEveryMs) {
    const due = deadlines.look({ ...waited, ...wait });
    if (due !== "nothing") return [due, waitedMs];
  }
  return ["nothing", ms];
}

const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = defaultLimits;

describe("a connection of HTTP/1.1 that waits", () => {
  test.each<{ name: string; wait: Partial<Waited>; want: readonly [Due, number] }>([
    { name: "for a request is ended when it is idle", wait: { stage: "head" }, want: ["end", idleTimeoutMs] },
    {
      name: "for a request, and is old, is ended soon",
      wait: { stage: "head", retired: true },
      want: ["end", retiredIdleMs],
    },
    {
      name: "for a head, and is old, goes on",
      wait: { stage: "head", headBegun: true, retired: true },
      want: ["refuse", headerTimeoutMs],
    },
    { name: "for a head", wait: { stage: "head", headBegun: true }, want: ["refuse", headerTimeoutMs] },
    { name: "for a body", wait: { stage: "body" }, want: ["refuse", requestTimeoutMs] },
    { name: "for a client to end its side", wait: { stage: "over" }, want: ["cut", lingerMsMax] },
    {
      name: "for a client to take its answer cuts it off",
      wait: { congested: true, stalledMs: idleTimeoutMs },
      want: ["cut", 0],
    },
    {
      name: "for a client to take its answer goes on while it takes some",
      wait: { congested: true, stalledMs: idleTimeoutMs - 1 },
      want: ["nothing", 3_600_000],
    },
    { name: "for a slow handler goes on", wait: {}, want: ["nothing", 3_600_000] },
    {
      name: "for a handler asks a client that has ended its side",
      wait: { clientEnded: true, canProbe: true },
      want: ["probe", lookEveryMs],
    },
    {
      name: "for a handler gives a client of HTTP/1.0 that has ended its side a while",
      wait: { clientEnded: true },
      want: ["refuse", lingerMsMax],
    },
    {
      name: "for more of an answer gives up a client that has ended its side",
      wait: { clientEnded: true, begun: true },
      want: ["refuse", lookEveryMs],
    },
  ])("$name", ({ wait, want }) => {
    expect(firstDue(wait, want[1])).toEqual(want);
  });

  test("begins anew with each sign of life", () => {
    const deadlines = new Deadlines(defaultLimits, lookEveryMs);
    for (let looks = 0; looks < 100; looks += 1) {
      expect(deadlines.look({ ...waited, clientEnded: true })).toBe("nothing");
      if (looks % 10 === 9) deadlines.restart();
    }
  });
});
