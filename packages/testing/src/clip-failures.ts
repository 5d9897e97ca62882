import type { Reporter, TestCase } from "vitest/node";

// What a row compares may be megabytes, and a screen is enough to see what went wrong.
const linesMax = 30;
const columnsMax = 200;

/**
 * Clips what is said of a row that failed, for the reporters behind this one. A hook would do so, too, but each of the
 * thousands of rows that pass would wait for it.
 */
export class ClipFailures implements Reporter {
  onTestCaseResult(test: TestCase): void {
    for (const error of test.result().errors ?? []) {
      const message = clip(error.message);
      if (error.stack !== undefined) error.stack = error.stack.replace(error.message, () => message);
      error.message = message;
      if (error.diff !== undefined) error.diff = clip(error.diff);
    }
  }
}

/** The beginning of a text, whose lines may be in colour. */
function clip(text: string): string {
  const lines = text.split("\n", linesMax + 1);
  const shown = lines
    .slice(0, linesMax)
    .map((line) => (line.length > columnsMax ? `${line.slice(0, columnsMax)}\x1b[39m…` : line));
  if (lines.length > linesMax) shown.push("… and more lines");
  return shown.join("\n");
}
