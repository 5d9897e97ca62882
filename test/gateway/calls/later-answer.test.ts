import type { Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { LaterAnswer } from "../../../src/gateway/calls/index.ts";

const message: Message = { $typeName: "test.Message" };
const error = new Error("no answer");

const isMessage = (given: unknown): unknown[] => ["message", given];
const isError = (thrown: unknown): unknown[] => ["error", thrown];

const outcomes = [
  { name: "a message", settle: (answer: LaterAnswer) => answer.succeed(message), want: ["message", message] },
  { name: "an error", settle: (answer: LaterAnswer) => answer.fail(error), want: ["error", error] },
];

describe.each(outcomes)("a later answer that is $name", ({ settle, want }) => {
  test.each([
    { name: "before it comes", order: ["tell", "settle"] },
    { name: "once it has come", order: ["settle", "tell"] },
  ])("is told at once to a taker that asks $name", ({ order }) => {
    const answer = new LaterAnswer();
    const taken: unknown[] = [];
    const steps: Record<string, () => void> = {
      settle: () => settle(answer),
      tell: () =>
        answer.tell({
          take: (given) => taken.push(isMessage(given)),
          takeError: (thrown) => taken.push(isError(thrown)),
        }),
    };
    for (const step of order) steps[step]?.();
    expect(taken).toEqual([want]);
  });

  test.each([
    { name: "before it comes", order: ["promise", "settle"] },
    { name: "once it has come", order: ["settle", "promise"] },
  ])("is a promise to whoever waits for it $name, more than once", async ({ order }) => {
    const answer = new LaterAnswer();
    const taken: Promise<unknown>[] = [];
    const steps: Record<string, () => void> = {
      settle: () => settle(answer),
      promise: () => {
        taken.push(
          answer.then(isMessage, isError),
          answer.catch(isError).then((given) => (Array.isArray(given) ? given : isMessage(given))),
          answer.finally(() => undefined).then(isMessage, isError),
          Promise.resolve(answer).then(isMessage, isError),
        );
      },
    };
    for (const step of order) steps[step]?.();
    expect(await Promise.all(taken)).toEqual([want, want, want, want]);
  });
});

test("a later answer prints as a promise", () => {
  expect(Object.prototype.toString.call(new LaterAnswer())).toBe("[object Promise]");
});
