/** Maximum timer delay in milliseconds. Node's timers accept 31 bits, and treat a longer delay as 1 ms. */
export const maxTimerMs: number = 2 ** 31 - 1;

/**
 * Calls `expire` after `timeoutMs`, which may exceed the maximum timer delay: `99999999H` is a valid gRPC timeout.
 * Returns a function that stops the timer and may be called at any time.
 */
export function startDeadline(timeoutMs: number, expire: () => void): () => void {
  let remainingMs = timeoutMs;
  let timer: ReturnType<typeof setTimeout>;
  const wait = (): void => {
    const step = Math.min(remainingMs, maxTimerMs);
    remainingMs -= step;
    timer = setTimeout(remainingMs > 0 ? wait : expire, step);
  };
  wait();
  return () => clearTimeout(timer);
}

/**
 * Calls `run` after `delayMs`, and does not keep the Node.js process alive. Never calls `run` after a delay above
 * {@link maxTimerMs}, such as `Infinity`.
 */
export function runLater(delayMs: number, run: () => void): void {
  if (delayMs <= maxTimerMs) setTimeout(run, delayMs).unref();
}

/** A timer that calls a function at regular intervals until the timer is stopped. */
export interface Interval {
  restart(): void;
  stop(): void;
}

/** Calls `run` whenever `everyMs` milliseconds have passed without a restart. Does not keep the process alive. */
export function startInterval(everyMs: number, run: () => void): Interval {
  let timer = setInterval(run, everyMs);
  // Timers are objects in Node, and numbers in browsers.
  if (typeof timer === "object") {
    timer.unref();
    return { restart: () => void timer.refresh(), stop: () => clearInterval(timer) };
  }
  const restart = (): void => {
    clearInterval(timer);
    timer = setInterval(run, everyMs);
  };
  return { restart, stop: () => clearInterval(timer) };
}

/** Calls `run` after all other work in this event-loop turn. Without `setImmediate`, a timer may add up to 4 ms. */
export const runAfterTurn: <T>(run: (argument: T) => void, argument: T) => void =
  globalThis.setImmediate ?? ((run, argument) => void setTimeout(run, 0, argument));

/** Runs all task steps in this event-loop turn. */
export function runSteps<Result>(steps: Iterator<unknown, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Milliseconds of work per turn in {@link runInTurns}. A few dozen concurrent calls cause the same delay. */
const turnMs = 10;

/**
 * Runs a long task without blocking the event loop. Each event-loop turn runs steps for `turnMs`, but at least one
 * step. `steps` yields where the task may be interrupted. Rejects with the error that a step throws.
 */
export async function runInTurns<Result>(steps: Iterator<unknown, Result>): Promise<Result> {
  for (let turnEndsAt = performance.now() + turnMs; ;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() < turnEndsAt) continue;
    await new Promise<void>((resolve) => runAfterTurn(resolve, undefined));
    turnEndsAt = performance.now() + turnMs;
  }
}
