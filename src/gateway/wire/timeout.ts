import type { ConnectError } from "@connectrpc/connect";

/** What the deadline header field of a request says: milliseconds, a mistake, or nothing. */
export interface Timeout {
  readonly timeoutMs?: number | undefined;
  readonly error?: ConnectError | undefined;
}

/** Milliseconds. A timer of node's takes a signed 32-bit number and turns anything above into 1 ms. */
export const timerMsMax: number = 2 ** 31 - 1;

/**
 * Calls `expire` once `timeoutMs` have passed, however long that is: `99999999H` is a legal deadline.
 *
 * @returns stops the clock; harmless afterwards
 */
export function startDeadline(timeoutMs: number, expire: () => void): () => void {
  let left = timeoutMs;
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const step = Math.min(left, timerMsMax);
    left -= step;
    timer = setTimeout(left > 0 ? wait : expire, step);
  };
  wait();
  return () => clearTimeout(timer);
}
