import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { onTestFinished, vi } from "vitest";
import { waitLimitMs, within } from "./deadline.ts";

/** A fake clock for connections, so that timeouts pass without a wait. */
interface FakeClock {
  /** Passes time, and then lets the event loop check timeouts. */
  pass(ms: number): Promise<void>;
  /** Passes time until a promise settles, and returns its result. */
  passUntil<Result>(promise: Promise<Result>, what: string): Promise<Result>;
  /** Waits for a condition without passing time. `expect.poll` would pass 50 ms between two attempts. */
  waitFor(isMet: () => boolean, what: string): Promise<void>;
}

/** Milliseconds per step, less than half of the shortest timeout in a test. */
const stepMs = 20;

/** Replaces the clock and the intervals until the test ends. Call the function before the server starts. */
export function useFakeClock(): FakeClock {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  return { pass, passUntil, waitFor };
}

async function pass(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await nextTurn();
}

async function passUntil<Result>(promise: Promise<Result>, what: string): Promise<Result> {
  const waiting = { isOver: false };
  const result = within(promise, what).finally(() => (waiting.isOver = true));
  // The rejection is handled below.
  result.catch(() => undefined);
  while (!waiting.isOver) await pass(stepMs);
  return await result;
}

async function waitFor(isMet: () => boolean, what: string): Promise<void> {
  for (const startedAtMs = Date.now(); !isMet(); await sleep(1)) {
    if (Date.now() - startedAtMs > waitLimitMs) throw new Error(`timed out waiting for ${what}`);
  }
}
