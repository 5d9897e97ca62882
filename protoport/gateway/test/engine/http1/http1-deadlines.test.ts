import { describe, expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../../src/http/exchange/limits.ts";
import { HttpProblem, maxLingerMs } from "../../../src/http/exchange/index.ts";
import { Http1Deadlines, retiredIdleMs, type ConnectionState } from "../../../src/engine/http1/http1-deadlines.ts";

const timeoutCheckIntervalMs = 1_000;
const flags = { headStarted: false, retired: false, clientClosed: false, canProbe: false, responseStarted: false };
const idle: ConnectionState = { stage: "response", ...flags, congested: false, stalledMs: 0 };

/** Checks a state until an action is due. @returns the action or its option, and after how many milliseconds */
function firstAction(
  wait: Partial<ConnectionState>,
  ms: number,
  limits: Partial<Limits> = {},
): readonly [due: string, afterMs: number] {
  const deadlines = new Http1Deadlines({ ...defaultLimits, ...limits }, timeoutCheckIntervalMs);
  for (let waitedMs = 0; waitedMs <= ms; waitedMs += timeoutCheckIntervalMs) {
    const due = deadlines.check({ ...idle, ...wait });
    if (due instanceof HttpProblem) return [due.option ?? due.errorCode, waitedMs];
    if (due !== "nothing") return [due, waitedMs];
  }
  return ["nothing", ms];
}

const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = defaultLimits;

describe("an HTTP/1.1 connection", () => {
  test.each<[name: string, wait: Partial<ConnectionState>, want: readonly [due: string, afterMs: number]]>(
    // oxfmt-ignore
    [
      ["is closed after the idle timeout without a request", { stage: "head" }, ["close", idleTimeoutMs]],
      ["is closed early without a request if it is retired", { stage: "head", retired: true },
        ["close", retiredIdleMs]],
      ["is refused after the header timeout even if it is retired", { stage: "head", headStarted: true, retired: true },
        ["limits.headerTimeoutMs", headerTimeoutMs]],
      ["is refused after the header timeout with an incomplete head", { stage: "head", headStarted: true },
        ["limits.headerTimeoutMs", headerTimeoutMs]],
      ["is refused after the request timeout with an incomplete body", { stage: "body" },
        ["limits.requestTimeoutMs", requestTimeoutMs]],
      ["is destroyed after the linger time if the client does not close its side", { stage: "closed" },
        ["destroy", maxLingerMs]],
      ["is destroyed if the client reads nothing for the idle timeout", { congested: true, stalledMs: idleTimeoutMs },
        ["destroy", 0]],
      ["is kept while the client reads a response", { congested: true, stalledMs: idleTimeoutMs - 1 },
        ["nothing", 3_600_000]],
      ["is kept while a slow handler runs", {}, ["nothing", 3_600_000]],
      ["is kept while a slow handler runs even if it is retired", { retired: true }, ["nothing", 3_600_000]],
      ["probes a half-closed client while a handler runs", { clientClosed: true, canProbe: true },
        ["probe", timeoutCheckIntervalMs]],
      ["refuses a half-closed HTTP/1.0 client after the linger time", { clientClosed: true },
        ["ERR_CLIENT_GONE", maxLingerMs]],
      ["refuses a half-closed client if a response pauses", { clientClosed: true, responseStarted: true },
        ["ERR_CLIENT_GONE", timeoutCheckIntervalMs]],
    ],
  )("%s", (_, wait, want) => expect(firstAction(wait, want[1])).toEqual(want));

  // Multiples of the check interval, so that a check is never late.
  const [brief, long] = [2 * timeoutCheckIntervalMs, 8 * timeoutCheckIntervalMs];
  test.each<
    [
      name: string,
      limits: Partial<Limits>,
      wait: Partial<ConnectionState>,
      want: readonly [due: string, afterMs: number],
    ]
  >(
    // oxfmt-ignore
    [
      ["is destroyed after a request timeout shorter than the linger time", { requestTimeoutMs: brief },
        { stage: "closed" }, ["destroy", brief]],
      ["is refused after a request timeout shorter than the header timeout",
        { requestTimeoutMs: brief, headerTimeoutMs: long }, { stage: "head", headStarted: true },
        ["limits.requestTimeoutMs", brief]],
      ["is refused after the header timeout if the request timeout is equal",
        { requestTimeoutMs: brief, headerTimeoutMs: brief }, { stage: "head", headStarted: true },
        ["limits.headerTimeoutMs", brief]],
      ["is closed after an idle timeout shorter than the time for retired connections", { idleTimeoutMs: 0 },
        { stage: "head", retired: true, stalledMs: -1 }, ["close", 0]],
    ],
  )("%s", (_, limits, wait, want) => expect(firstAction(wait, long, limits)).toEqual(want));

  test("has the full idle timeout after a slow response", () => {
    const deadlines = new Http1Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let waitedMs = 0; waitedMs <= idleTimeoutMs; waitedMs += timeoutCheckIntervalMs)
      expect(deadlines.check({ ...idle, stage: "head", congested: true })).toBe("nothing");
    expect(deadlines.check({ ...idle, stage: "head" })).toBe("nothing");
  });

  test("restarts its timeout whenever the client is active", () => {
    const deadlines = new Http1Deadlines(defaultLimits, timeoutCheckIntervalMs);
    for (let checks = 0; checks < 100; checks += 1) {
      expect(deadlines.check({ ...idle, clientClosed: true })).toBe("nothing");
      if (checks % 10 === 9) deadlines.restart();
    }
  });
});
