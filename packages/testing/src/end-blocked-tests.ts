import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Setup file of each test file. Vitest cannot stop a test that blocks its process, because its timeouts are that
// process's timers.

/** Milliseconds that a test may block its process: a test timeout. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** Reports the running test to this process's watchdog, which runs many test files. */
  var reportToWatchdog: ((testName: string) => void) | undefined;
}

const report = (globalThis.reportToWatchdog ??= startWatchdog(blockedLimitMs));

beforeEach(({ task }) => report(task.fullName));
