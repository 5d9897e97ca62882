import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { describeProgress, lengthOf } from "../../../src/plantstore/cli/import-progress.ts";

test.each([
  {
    state: { ids: 1_200_000, bytes: 60, bytesTotal: 100, elapsedMs: 3_000 },
    want: "1,200,000 ids, 400,000/s, 60 %, 2 s left",
  },
  { state: { ids: 10, bytes: 20, bytesTotal: undefined, elapsedMs: 1_000 }, want: "10 ids, 10/s" },
  { state: { ids: 10, bytes: 101, bytesTotal: 100, elapsedMs: 1_000 }, want: "10 ids, 10/s, 100 %, 0 s left" },
  { state: { ids: 0, bytes: 0, bytesTotal: 100, elapsedMs: 1_000 }, want: "0 ids, 0/s" },
])("the progress of an import is told as $want", ({ state, want }) => {
  expect(describeProgress(state)).toBe(want);
});

test.each([
  { name: "a file", file: import.meta.filename, want: statSync(import.meta.filename).size },
  { name: "standard input", file: "-", want: undefined },
  { name: "a device, such as a pipe that a shell names,", file: "/dev/null", want: undefined },
])("the length of $name is known if there is one", ({ file, want }) => {
  expect(lengthOf(file)).toBe(want);
});
