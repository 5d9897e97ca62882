import { describe, expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../http/src/exchange/limits.ts";
import { lingerMsMax, retiredIdleMs } from "../../../http/src/exchange/index.ts";
import { Http1Deadlines, type DueAction, type ConnectionState } from "../../src/http1/http1-deadlines.ts";

const timeoutCheckIntervalMs = 1_000;
const idle: ConnectionState = {
  stage: "response",
  headStarted: false,
  retired: false,
  clientClosed: false,
  canProbe: false,
  responseStarted: false,
  congested: false,
  stalledMs: 0,
};

/** Checks a state until an action is due. @returns the action, and after how many milliseconds */
function firstAction(
  wait: Partial<ConnectionState>,
  ms: number,
  limits: Partial<Limits> = {},
): readonly [DueAction, number] {
  const deadlines = new Http1Deadlines({ ...defaultLimits, ...limits }, timeoutCheckIntervalMs);
  for (let waitedMs = 0; waitedMs <= ms; waitedMs += timeoutCheckIntervalMs) {
    const due = deadlines.check({ ...idle, ...wait });
    if (due !== "nothing") return [due, waitedMs];
  }
  return ["nothing", ms];
}

const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = defaultLimits;

describe("an HTTP/1.1 connection that waits", () => {
  test.each<[name: string, wait: Partial<ConnectionState>, want: readonly [DueAction, number]]>([
    ["for a request is closed after the idle timeout", { stage: "head" }, ["close", idleTimeoutMs]],
    [
      "for a request and is retired is closed after a short time",
      { stage: "head", retired: true },
      ["close", retiredIdleMs],
    ],
    [
      "for a head and is retired is refused after the header timeout",
      { stage: "head", headStarted: true, retired: true },
      ["refuse", headerTimeoutMs],
    ],
    [
      "for a head is refused after the header timeout",
      { stage: "head", headStarted: true },
      ["refuse", headerTimeoutMs],
    ],
    ["for a body is refused after the request timeout", { stage: "body" }, ["refuse", requestTimeoutMs]],
    [
      "for the client to close its side is destroyed after the linger time",
      { stage: "closed" },
      ["destroy", lingerMsMax],
    ],
    [
      "for the client to read its response is destroyed after the idle timeout",
      { congested: true, stalledMs: idleTimeoutMs },
      ["destroy", 0],
    ],
    [
      "for the client to read its response is kept while the client makes progress",
      { congested: true, stalledMs: idleTimeoutMs - 1 },
      ["nothing", 3_600_000],
    ],
    ["for a slow handler is kept", {}, ["nothing", 3_600_000]],
    [
      "for a handler probes a client that has closed its side",
      { clientClosed: true, canProbe: true },
      ["probe", timeoutCheckIntervalMs],
    ],
    [
      "for a handler refuses a client of HTTP/1.0 that has closed its side after the linger time",
      { clientClosed: true },
      ["refuse", lingerMsMax],
    ],
    [
      "for more of a response refuses a client that has closed its side",
      { clientClosed: true, responseStarted: true },
      ["refuse", timeoutCheckIntervalMs],
    ],
  ])("%s", (_, wait, want) => {
    expect(firstAction(wait, want[1])).toEqual(want);
  });

  // Multiples of the check interval, so that a check is never late.
  const [brief, long] = [2 * timeoutCheckIntervalMs, 8 * timeoutCheckIntervalMs];
  test.each<
    [name: string, limits: Partial<Limits>, wait: Partial<ConnectionState>, want: readonly [DueAction, number]]
  >([
    [
      "for the client to close its side waits no longer than the request timeout",
      { requestTimeoutMs: brief },
      { stage: "closed" },
      ["destroy", brief],
    ],
    [
      "for a head waits no longer than the request timeout",
      { requestTimeoutMs: brief, headerTimeoutMs: long },
      { stage: "head", headStarted: true },
      ["refuse", brief],
    ],
    [
      "for a request and is retired waits no longer than the idle timeout",
      { idleTimeoutMs: 0 },
      { stage: "head", retired: true, stalledMs: -1 },
      ["close", 0],
    ],
  ])("%s", (_, limits, wait, want) => {
    expect(firstAction(wait, long, limits)).toEqual(want);
  });

  test("for a request has the full timeout after a slow response", () => {
    const deadlines = new Http1Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let waitedMs = 0; waitedMs <= idleTimeoutMs; waitedMs += timeoutCheckIntervalMs) {
      expect(deadlines.check({ ...idle, stage: "head", congested: true })).toBe("nothing");
    }
    expect(deadlines.check({ ...idle, stage: "head" })).toBe("nothing");
  });

  test("restarts its wait with each client activity", () => {
    const deadlines = new Http1Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let checks = 0; checks < 100; checks += 1) {
      expect(deadlines.check({ ...idle, clientClosed: true })).toBe("nothing");
      if (checks % 10 === 9) deadlines.restart();
    }
  });
});
