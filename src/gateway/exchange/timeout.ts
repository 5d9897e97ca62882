/** Milliseconds. node's timers take a signed 32-bit number and turn anything above into 1 ms. */
export const timerMsMax: number = 2 ** 31 - 1;

/**
 * Calls `expire` once `timeoutMs` have passed, however long that is: `99999999H` is a legal deadline.
 *
 * @returns a function that stops the timer, which may be called at any time
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
