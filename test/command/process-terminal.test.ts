import { afterEach, expect, test, vi } from "vitest";
import { processTerminal } from "../../src/command/process-terminal.ts";

afterEach(() => vi.unstubAllGlobals());

test.each([
  { name: "standard error", stderr: { isTTY: true }, stdout: {}, want: true },
  { name: "standard output", stderr: {}, stdout: { isTTY: true }, want: false },
])("with $name as a terminal, the existence of a progress line is $want", ({ stderr, stdout, want }) => {
  vi.stubGlobal("process", { ...process, stderr, stdout: { ...stdout, on: vi.fn() } });
  expect(processTerminal(vi.fn()).progress !== undefined).toBe(want);
});
