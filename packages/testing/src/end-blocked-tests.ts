import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Setup file that runs before each test file. Vitest cannot stop a test that blocks its process, because its timeouts
// are that process's timers.

/** How long a test may block its process, in ms. Equals the test timeout. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** Reports the running test to this process's watchdog, which runs many test files. */
  var reportToWatchdog: ((testName: string) => void) | undefined;
}

const report = (globalThis.reportToWatchdog ??= startWatchdog(blockedLimitMs));

beforeEach(({ task }) => report(task.fullName));
