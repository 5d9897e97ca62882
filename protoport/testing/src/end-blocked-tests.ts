import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Setup file. Vitest cannot stop a test that blocks its process, because its timeouts are timers in that process.

/** Maximum time for which a test may block its process, in ms. The limit equals the test timeout. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** Reports the running test to this process's watchdog. The process runs many test files. */
  var reportToWatchdog: ((testName: string) => void) | undefined;
}

const report = (globalThis.reportToWatchdog ??= startWatchdog(blockedLimitMs));
beforeEach(({ task }) => report(task.fullName));
