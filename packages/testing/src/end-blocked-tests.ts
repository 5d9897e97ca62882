import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Setup file of each test file. Vitest cannot stop a test that blocks its process, because its timeouts are timers of that
// process.

/** Milliseconds that a test may block its process: the timeout of a test. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** Reports the running test to the watchdog of this process, which runs many test files. */
  var reportToWatchdog: ((testName: string) => void) | undefined;
}

const report = (globalThis.reportToWatchdog ??= startWatchdog(blockedLimitMs));

beforeEach(({ task }) => report(task.fullName));
