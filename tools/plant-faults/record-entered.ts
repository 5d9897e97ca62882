import { appendFileSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach } from "vitest";
import { enteredBlocks, enteredByChildren } from "./entered-blocks.ts";

// Set up before each test file: records which blocks of the source each test enters. A block that is entered outside of
// every test belongs to the whole file. A process or thread works for the test during which it has loaded the source;
// one that was there before may work for any test.

const running = new Set<string>();
const childrenOfTests = new Set<string>();
const entered = new Map<string, Set<string>>();
let seen = new Set<string>();
let childLinesRead = childLines().length;
let testFile = "";

/** Stands for the id of the test file, which is not known before its first test. */
const wholeFile = "";

globalThis.plantFaultsEntered = (block): void => {
  if (seen.has(block)) return;
  seen.add(block);
  for (const test of running.size === 0 ? [wholeFile] : running) enter(test, block);
};

beforeEach(({ task }) => {
  testFile = task.file.id;
  attributeChildren();
  running.add(task.id);
  seen = new Set();
});

afterEach(({ task }) => {
  attributeChildren();
  running.delete(task.id);
  seen = new Set();
});

afterAll(() => {
  attributeChildren();
  for (const [test, blocks] of entered)
    appendFileSync(enteredBlocks, `${[test === wholeFile ? testFile : test, ...blocks].join(" ")}\n`);
});

function enter(test: string, block: string): void {
  const blocks = entered.get(test);
  if (blocks === undefined) entered.set(test, new Set([block]));
  else blocks.add(block);
}

/** Attributes the blocks that children have entered since the last call to the tests that are running. */
function attributeChildren(): void {
  const lines = childLines();
  for (const line of lines.slice(childLinesRead)) {
    const [child = "", block = ""] = line.split(" ");
    if (block === "" && running.size > 0) childrenOfTests.add(child);
    const tests = childrenOfTests.has(child) && running.size > 0 ? running : [wholeFile];
    if (block !== "") for (const test of tests) enter(test, block);
  }
  childLinesRead = lines.length;
}

function childLines(): string[] {
  return readFileSync(enteredByChildren, "utf8").split("\n").slice(0, -1);
}
