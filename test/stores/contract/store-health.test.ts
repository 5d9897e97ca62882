import { expect, onTestFinished, test } from "vitest";
import { StoreHealth } from "../../../src/stores/contract/store-health.ts";

test("hasCommittedSince() ignores commits before a reported problem", () => {
  const health = new StoreHealth({ findProblem: async () => undefined, watchIntervalMs: 60_000 });
  // A permanent problem stops the timers.
  onTestFinished(() => health.report({ text: "the file is damaged", isTemporary: false }));
  health.recordCommit();
  expect(health.hasCommittedSince(0)).toBe(true);
  health.report({ text: "the disk is full", isTemporary: true });
  expect(health.hasCommittedSince(0)).toBe(false);
});

test("a check that finds no problem does not clear a permanent problem", async () => {
  const { promise: found, resolve: finishCheck } = Promise.withResolvers<undefined>();
  const health = new StoreHealth({ findProblem: () => found, watchIntervalMs: 60_000 });
  const checking = health.check();
  const damaged = { text: "the file is damaged", isTemporary: false };
  health.report(damaged);
  finishCheck(undefined);
  await checking;
  expect(health.problem).toBe(damaged);
});
