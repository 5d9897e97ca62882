/**
 * How long any single wait of a test may take, in ms: some thirty times what the longest needs, and half of vitest's own
 * limit. A busy machine makes things late, not wrong.
 */
export const waitLimitMs = 30_000;

// The real ones, whatever a test fakes later: 60 s that it skips must not end the waits of the test itself.
const { setTimeout, clearTimeout } = globalThis;

/**
 * Waits for `promise`, and rejects with an error that names `what` when that takes too long.
 *
 * Every wait on a socket or a process goes through here, so that a server that hangs fails the one
 * test that met it, with a sentence that says what was waited for.
 */
export async function within<T>(promise: Promise<T>, what: string, limitMs: number = waitLimitMs): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${String(limitMs)} ms for ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
