import type { TestCase, TestModule, Reporter } from "vitest/node";

interface Line {
  readonly client: string;
  passed: number;
  failed: number;
}

/**
 * Prints one line per client when the suite "clients" ends. The line has the numbers of passed and failed tests, or
 * states that the toolchain is not installed. The last line has the totals.
 */
export class ClientLines implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules
      .filter((module) => module.project.name === "clients")
      .flatMap((module) => [...module.children.allTests()]);
    if (tests.length === 0) return;
    const lines = linesOf(tests);
    const width = Math.max(...lines.map(({ client }) => client.length)) + 2;
    console.log("");
    for (const line of lines) console.log(`${line.client.padEnd(width)}${toText(line)}`);
    console.log(`\n${sum(lines, "passed")} passed, ${sum(lines, "failed")} failed`);
  }
}

function linesOf(tests: readonly TestCase[]): readonly Line[] {
  const lines = new Map<string, Line>();
  for (const test of tests) {
    const client = clientOf(test);
    const line = lines.get(client) ?? { client, passed: 0, failed: 0 };
    lines.set(client, line);
    const { state } = test.result();
    if (state === "passed" || state === "failed") line[state]++;
  }
  return [...lines.values()].toSorted((a, b) => (a.client < b.client ? -1 : 1));
}

// Returns a test's client, which is the innermost group around the test, or the file if there are no groups.
function clientOf({ parent, module }: TestCase): string {
  return parent.type === "suite" ? parent.name : (module.moduleId.split("/").at(-1) ?? "");
}

function toText({ passed, failed }: Line): string {
  return passed + failed === 0 ? "not run: its toolchain is not on PATH" : `${passed} passed, ${failed} failed`;
}

function sum(lines: readonly Line[], key: "passed" | "failed"): number {
  return lines.reduce((total, line) => total + line[key], 0);
}
