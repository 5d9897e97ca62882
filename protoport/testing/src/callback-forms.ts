import { afterEach, beforeEach, expect } from "vitest";

/** The ways in which an application's callback completes. */
export const forms = ["returns", "resolves", "throws", "rejects"] as const;

export type Form = (typeof forms)[number];

export function throws(error: unknown): () => never {
  return () => {
    throw error;
  };
}

/** Returns a callback that completes in this form. @param value - the result @param failure - the error */
export function callbackOf(form: Form, value: unknown, failure: Error): () => unknown {
  switch (form) {
    case "returns":
      return () => value;
    case "resolves":
      return async () => value;
    case "throws":
      return throws(failure);
    case "rejects":
      return async () => {
        throw failure;
      };
  }
}

/** Fails each test in this file that causes an unhandled rejection, which would exit a process. */
export function expectNoUnhandledRejections(): void {
  let unhandled: unknown[];
  const record = (reason: unknown): void => void unhandled.push(reason);

  beforeEach(() => {
    unhandled = [];
    process.on("unhandledRejection", record);
  });

  afterEach(async () => {
    // Node emits `unhandledRejection` at the end of the event loop turn.
    await new Promise(setImmediate);
    process.off("unhandledRejection", record);
    expect(unhandled).toEqual([]);
  });
}
