import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Setup file that runs before each test file. Vitest cannot stop a test that blocks its process, because vitest's
// timeouts are timers in the same process.

/** Maximum time for which a test may block its process, in ms. The limit equals the test timeout. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** Reports the running test to this process's watchdog. The process runs many test files. */
  var reportToWatchdog: ((testName: string) => void) | undefined;
}

const report = (globalThis.reportToWatchdog ??= startWatchdog(blockedLimitMs));

beforeEach(({ task }) => report(task.fullName));
