import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "@protoport/testing/process";

// The tests use a child process with a fake clock, because the second signal exits the process.

const source = JSON.stringify(join(projectFolder, "protoport/command-line/src/stop-signals.ts"));

const programOf = (first: NodeJS.Signals, second: NodeJS.Signals, afterMs: number): string => `
    import { firstStopSignal } from ${source};
    let nowMs = 5_000;
    performance.now = () => nowMs;
    const stopped = firstStopSignal(() => console.log("second signal"));
    process.emit("${first}", "${first}");
    nowMs += ${afterMs};
    process.emit("${second}", "${second}");
    console.log(await stopped);
    process.exit(0);`;

const stopped = { exitCode: 0, stdout: "SIGTERM\n", stderr: "" };
const exited = { exitCode: 1, stdout: "second signal\n", stderr: "" };

test.each([
  ["a second SIGTERM within one second of the first is ignored", "SIGTERM", 999, stopped],
  ["a second SIGTERM one second after the first exits immediately", "SIGTERM", 1_000, exited],
  ["SIGINT shortly after SIGTERM exits immediately", "SIGINT", 1, exited],
] as const)("%s", async (_name, second, afterMs, want) => {
  const program = programOf("SIGTERM", second, afterMs);
  expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toEqual(want);
});

test("SIGINT sent by both the terminal and npm counts as one signal", async () => {
  const program = programOf("SIGINT", "SIGINT", 0);
  const want = { ...stopped, stdout: "SIGINT\n" };
  expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toEqual(want);
});
