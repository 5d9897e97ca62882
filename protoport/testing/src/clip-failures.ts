import type { Reporter, TestCase } from "vitest/node";

// Failure messages are limited to one screen, because compared values may have megabytes.
const linesMax = 30;
const columnsMax = 200;

/** Truncates failure messages for the reporters after this reporter. A test hook would delay each passing test, too. */
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

/** Returns the first lines of a text, which may have ANSI colors. */
function clip(text: string): string {
  const lines = text.split("\n", linesMax + 1);
  const shown = lines
    .slice(0, linesMax)
    .map((line) => (line.length > columnsMax ? `${line.slice(0, columnsMax)}\x1b[39m…` : line));
  if (lines.length > linesMax) shown.push("… and more lines");
  return shown.join("\n");
}
