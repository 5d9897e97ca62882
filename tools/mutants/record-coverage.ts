import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach } from "vitest";
import { childCoverageFile, coverageFile } from "./coverage-files.ts";

// A vitest setup file that records which source blocks each test enters. A block that is entered outside every test, or
// by a process or thread that a test has started, is recorded for the test file.

const running = new Set<string>();
const entered = new Map<string, Set<string>>();
let recorded = new Set<string>();
let testFileId = "";

/** The key for the test file's blocks, because the file's id is not known before its first test. */
const testFileKey = "";

globalThis.recordEnteredBlock = (block): void => {
  if (recorded.has(block)) return;
  recorded.add(block);
  for (const test of running.size === 0 ? [testFileKey] : running)
    entered.set(test, (entered.get(test) ?? new Set()).add(block));
};

beforeEach(({ task }) => {
  testFileId = task.file.id;
  running.add(task.id);
  recorded = new Set();
});

afterEach(({ task }) => {
  running.delete(task.id);
  recorded = new Set();
});

afterAll(() => {
  const byChildren = readFileSync(childCoverageFile, "utf8").split("\n");
  entered.set(testFileKey, new Set([...(entered.get(testFileKey) ?? []), ...byChildren]));
  for (const [test, blocks] of entered)
    appendFileSync(coverageFile, `${[test === testFileKey ? testFileId : test, ...blocks].join(" ")}\n`);
  writeFileSync(childCoverageFile, "");
});
