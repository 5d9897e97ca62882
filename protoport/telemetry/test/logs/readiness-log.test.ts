import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Readiness } from "../../../gateway/src/health/readiness.ts";
import { logReadiness } from "../../src/logs/readiness-log.ts";
import { openLogLines } from "@protoport/testing/process";

const warned = { level: "warn", errorCode: "ERR_NOT_READY", msg: "not ready" };
const notReady = (part: string, problem: string) => ({ ...warned, part, problem });
const lastedMs = expect.any(Number);
const readyAgain = (part: string, problem: string) => ({ level: "warn", msg: "ready again", part, problem, lastedMs });
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

test("a component is logged when it becomes unready and when it recovers", () => {
  const store: { problem?: string | undefined } = { problem: "the disk is full" };
  const credentials: { problem?: string | undefined } = {};
  const { log, lines } = openLogLines("warn");
  const stop = logReadiness(new Readiness({ store, credentials }), log);
  vi.advanceTimersByTime(3_000);
  expect(lines()).toMatchObject([notReady("store", "the disk is full")]);
  // Another cause is logged once ten seconds have passed.
  credentials.problem = "the provider is down";
  for (const problem of ["the server is down", "the disk is full", "the server is down"]) {
    store.problem = problem;
    vi.advanceTimersByTime(3_000);
  }
  store.problem = credentials.problem = undefined;
  vi.advanceTimersByTime(3_000);
  expect(lines()).toMatchObject([
    notReady("store", "the disk is full"),
    notReady("credentials", "the provider is down"),
    notReady("store", "the server is down"),
    readyAgain("store", "the server is down"),
    readyAgain("credentials", "the provider is down"),
  ]);
  stop();
});

test("a component that becomes unready again is logged with the new cause", () => {
  const store: { problem?: string | undefined } = {};
  const { log, lines } = openLogLines("warn");
  const stop = logReadiness(new Readiness({ store }), log);
  for (const [problem, lastsMs] of [
    ["the disk is full", 3_000],
    [undefined, 6_000],
    ["the server is down", 1_500],
    [undefined, 750],
    ["the disk is full", 750],
  ] as const) {
    store.problem = problem;
    vi.advanceTimersByTime(lastsMs);
  }
  stop();
  store.problem = undefined;
  vi.advanceTimersByTime(3_000);
  expect(lines()).toMatchObject([
    notReady("store", "the disk is full"),
    { ...readyAgain("store", "the disk is full"), lastedMs: 3_000 },
    notReady("store", "the server is down"),
    { ...readyAgain("store", "the server is down"), lastedMs: 1_500 },
    notReady("store", "the disk is full"),
  ]);
});
