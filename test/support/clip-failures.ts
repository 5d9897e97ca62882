import { afterEach } from "vitest";

// What a row compares may be megabytes, and a screen is enough to see what went wrong.
const linesMax = 30;
const columnsMax = 200;

afterEach(({ task }) => {
  for (const error of task.result?.errors ?? []) {
    const message = clip(error.message);
    if (error.stack !== undefined) error.stack = error.stack.replace(error.message, () => message);
    error.message = message;
    if (error.diff !== undefined) error.diff = clip(error.diff);
  }
});

/** The beginning of a text, whose lines may be in colour. */
function clip(text: string): string {
  const lines = text.split("\n", linesMax + 1);
  const shown = lines
    .slice(0, linesMax)
    .map((line) => (line.length > columnsMax ? `${line.slice(0, columnsMax)}\x1b[39m…` : line));
  if (lines.length > linesMax) shown.push("… and more lines");
  return shown.join("\n");
}
