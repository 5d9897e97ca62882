/**
 * Timeout for a single wait in a test, in ms. The timeout is half of vitest's own timeout, and about thirty times the
 * longest wait, so that a busy machine does not fail tests.
 */
export const waitLimitMs = 30_000;

// The real timer functions are kept, because fake timers that a test installs later must not expire the test's own
// waits.
const { setTimeout, clearTimeout } = globalThis;

/**
 * Waits for `promise`, and rejects with an error that names `what` after a timeout.
 *
 * Use `within` for every wait on a socket or a process, so that a server that hangs fails only the test that waits for
 * the server.
 */
export async function within<T>(promise: Promise<T>, what: string, limitMs: number = waitLimitMs): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${String(limitMs)} ms waiting for ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
