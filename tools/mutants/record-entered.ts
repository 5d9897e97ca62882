import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach } from "vitest";
import { enteredBlocks, enteredByChildren } from "./entered-blocks.ts";

// Set up before each test file: records which blocks of the source each test enters. A block that is entered outside of
// every test belongs to the whole file, and so does one that a process or thread enters that a test has started.

const running = new Set<string>();
const entered = new Map<string, Set<string>>();
let seen = new Set<string>();
let testFile = "";

/** Stands for the id of the test file, which is not known before its first test. */
const wholeFile = "";

globalThis.reportEnteredBlock = (block): void => {
  if (seen.has(block)) return;
  seen.add(block);
  for (const test of running.size === 0 ? [wholeFile] : running)
    entered.set(test, (entered.get(test) ?? new Set()).add(block));
};

beforeEach(({ task }) => {
  testFile = task.file.id;
  running.add(task.id);
  seen = new Set();
});

afterEach(({ task }) => {
  running.delete(task.id);
  seen = new Set();
});

afterAll(() => {
  const byChildren = readFileSync(enteredByChildren, "utf8").split("\n");
  entered.set(wholeFile, new Set([...(entered.get(wholeFile) ?? []), ...byChildren]));
  for (const [test, blocks] of entered)
    appendFileSync(enteredBlocks, `${[test === wholeFile ? testFile : test, ...blocks].join(" ")}\n`);
  writeFileSync(enteredByChildren, "");
});
