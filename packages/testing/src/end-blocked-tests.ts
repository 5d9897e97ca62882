import { beforeEach } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { startWatchdog } from "./process/watchdog.ts";

// Set up before each test file. Vitest cannot end a test that blocks its process: its limits are timers of that process.

/** How long a test may block its process, in ms: as long as it may take. */
const blockedLimitMs = 2 * waitLimitMs;

declare global {
  /** The watchdog of this process, which runs many test files. */
  var tellWatchdog: ((what: string) => void) | undefined;
}

const tell = (globalThis.tellWatchdog ??= startWatchdog(blockedLimitMs));

beforeEach(({ task }) => tell(task.fullName));
