import { randomInt } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

const callers = 8;
/** Milliseconds between two calls of a caller, at most, so that connections are idle at times. */
const maxPauseMs = 10;

/** Calls until standard input ends. Prints the number of calls, then each error with its count. */
export async function callUntilTheEnd(call: () => Promise<unknown>): Promise<void> {
  const ended = new AbortController();
  let count = 0;
  const errors = new Map<string, number>();
  const repeat = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      count += 1;
      try {
        await call();
      } catch (error) {
        const { stderr, cause = error }: { stderr?: string; cause?: unknown } = Object(error);
        const text = stderr ?? String(cause);
        errors.set(text, (errors.get(text) ?? 0) + 1);
      }
      await pause(randomInt(maxPauseMs));
    }
  };
  const repeating = Promise.all(Array.from({ length: callers }, repeat));
  process.stdin.resume();
  await once(process.stdin, "end");
  ended.abort();
  await repeating;
  console.log(count);
  for (const [text, times] of errors) console.log(`${times} ${text.split("\n")[0]}`);
  process.exit(0);
}
