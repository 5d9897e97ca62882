import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../../../testing/src/process/child-program.ts";

// In a process of its own, whose clock is set by hand: the second signal exits the process.

const source = JSON.stringify(join(projectFolder, "packages/proxy/src/command/terminal.ts"));

test.each([
  { first: "SIGINT", second: "SIGINT", afterMs: 0, exitCode: 0 },
  { first: "SIGTERM", second: "SIGTERM", afterMs: 999, exitCode: 0 },
  { first: "SIGTERM", second: "SIGTERM", afterMs: 1_000, exitCode: 1 },
  { first: "SIGTERM", second: "SIGINT", afterMs: 1, exitCode: 1 },
])(
  "$second $afterMs ms after $first: the command exits with $exitCode",
  async ({ first, second, afterMs, exitCode }) => {
    const program = `
    import { processTerminal } from ${source};
    let nowMs = 5_000;
    performance.now = () => nowMs;
    const stopped = processTerminal().stopped();
    process.emit("${first}", "${first}");
    nowMs += ${String(afterMs)};
    process.emit("${second}", "${second}");
    await stopped;
    process.exit(0);`;
    expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toMatchObject({ exitCode });
  },
);
