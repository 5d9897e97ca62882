import { afterEach, beforeEach, expect } from "vitest";

/** The ways in which a callback of the program ends. */
export const forms = ["returns", "resolves", "throws", "rejects"] as const;

export type Form = (typeof forms)[number];

/** Returns a callback of this form, with what it returns or else fails with. */
export function callbackOf(form: Form, value: unknown, failure: Error): () => unknown {
  switch (form) {
    case "returns":
      return () => value;
    case "resolves":
      return async () => value;
    case "throws":
      return () => {
        throw failure;
      };
    case "rejects":
      return async () => {
        throw failure;
      };
  }
}

/** Fails each test of this file that leaves a rejection unhandled, which would exit a process. */
export function expectNoUnhandledRejections(): void {
  let unhandled: unknown[];
  const record = (reason: unknown): void => void unhandled.push(reason);

  beforeEach(() => {
    unhandled = [];
    process.on("unhandledRejection", record);
  });

  afterEach(async () => {
    // Node emits the event at the end of the turn.
    await new Promise(setImmediate);
    process.off("unhandledRejection", record);
    expect(unhandled).toEqual([]);
  });
}
