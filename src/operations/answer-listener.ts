import type { Log } from "./log.ts";

/** Told of every answered request. */
export type AnswerListener<A> = (answer: A) => void;

/**
 * Returns one listener of several: `first`, and then `second`, whose faults are logged and go no further.
 *
 * `undefined` when there is neither, so that nobody collects what nobody hears.
 *
 * @param second - not our own: a program's metrics must not be able to spoil an answer
 */
export function bothListeners<A>(
  first: AnswerListener<A> | undefined,
  second: AnswerListener<A> | undefined,
  log: Log,
): AnswerListener<A> | undefined {
  if (second === undefined) return first;
  return (answer) => {
    first?.(answer);
    try {
      second(answer);
    } catch (err) {
      log.error({ err }, "fault in a listener to answers");
    }
  };
}
