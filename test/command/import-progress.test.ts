import { statSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import { describeProgress, lengthOf, showProgress } from "../../src/command/import-progress.ts";
import { processTerminal } from "../../src/command/process-terminal.ts";

afterEach(() => vi.unstubAllGlobals());

test.each([
  ["1,200,000 ids, 400,000/s, 60 %, 2 s left", { ids: 1_200_000, bytes: 60, bytesTotal: 100, elapsedMs: 3_000 }],
  ["10 ids, 10/s", { ids: 10, bytes: 20, bytesTotal: undefined, elapsedMs: 1_000 }],
  ["10 ids, 10/s, 100 %, 0 s left", { ids: 10, bytes: 101, bytesTotal: 100, elapsedMs: 1_000 }],
  ["0 ids, 0/s", { ids: 0, bytes: 0, bytesTotal: 100, elapsedMs: 1_000 }],
])('describeProgress returns "%s"', (want, state) => {
  expect(describeProgress(state)).toBe(want);
});

test("showProgress shows the progress, and updates it", async () => {
  let shown = "";
  const show = showProgress("-", { progress: (line) => (shown = line) });
  const shownOf = (ids: number): string => {
    show(ids, 2 * ids);
    return shown;
  };
  await expect.poll(() => shownOf(1)).toMatch(/^1 ids, /);
  await expect.poll(() => shownOf(2)).toMatch(/^2 ids, /);
});

test.each([
  { name: "the size of a file", file: import.meta.filename, want: statSync(import.meta.filename).size },
  { name: "undefined for standard input", file: "-", want: undefined },
  { name: "undefined for a character device", file: "/dev/null", want: undefined },
])("lengthOf returns $name", ({ file, want }) => {
  expect(lengthOf(file)).toBe(want);
});

test.each([
  { name: "standard error", stderr: { isTTY: true }, stdout: {}, want: true },
  { name: "standard output", stderr: {}, stdout: { isTTY: true }, want: false },
])("progress is shown if $name is a terminal: $want", ({ stderr, stdout, want }) => {
  vi.stubGlobal("process", { ...process, stderr, stdout: { ...stdout, on: vi.fn() } });
  expect(processTerminal(vi.fn()).progress !== undefined).toBe(want);
});
