/** Timeout for a single wait in a test, in ms: half of vitest's own, and about thirty times the longest wait. */
export const waitLimitMs = 30_000;
// The real timer functions, because a test's fake timers must not expire the test's own waits.
const { setTimeout, clearTimeout } = globalThis;

/** Rejects with an error that names `what` after a timeout. Use it for every wait on a socket or a process. */
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
