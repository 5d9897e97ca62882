const tickMs = 100;

/** A clock that stands still while the machine does. Dispose of it with `using`. */
export interface RunningClock extends Disposable {
  elapsedMs(): number;
}

/**
 * Starts a clock that counts the time in which this process could run: of a pause of the whole machine it counts a
 * tenth of a second, which is no lateness of what is measured.
 */
export function startRunningClock(): RunningClock {
  let elapsedMs = 0;
  const timer = setInterval(() => (elapsedMs += tickMs), tickMs);
  return { elapsedMs: () => elapsedMs, [Symbol.dispose]: () => clearInterval(timer) };
}
