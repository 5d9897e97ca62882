import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "@protoport/testing/process";

// Runs in a separate process with a fake clock, because the second signal exits the process.

const source = JSON.stringify(join(projectFolder, "protoport/proxy/src/command/terminal.ts"));

test.each([
  { first: "SIGINT", second: "SIGINT", afterMs: 0, exitCode: 0 },
  { first: "SIGTERM", second: "SIGTERM", afterMs: 999, exitCode: 0 },
  { first: "SIGTERM", second: "SIGTERM", afterMs: 1_000, exitCode: 1 },
  { first: "SIGTERM", second: "SIGINT", afterMs: 1, exitCode: 1 },
])(
  "the command exits with $exitCode if $second follows $first after $afterMs ms",
  async ({ first, second, afterMs, exitCode }) => {
    const program = `
    import { processTerminal } from ${source};
    let nowMs = 5_000;
    performance.now = () => nowMs;
    const stopped = processTerminal(() => undefined).stopRequested();
    process.emit("${first}", "${first}");
    nowMs += ${String(afterMs)};
    process.emit("${second}", "${second}");
    await stopped;
    process.exit(0);`;
    expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toMatchObject({ exitCode });
  },
);
