import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../../packages/testing/src/process/child-program.ts";

// In a process of their own, whose clock is set by hand: the second signal exits the process.

const source = JSON.stringify(join(projectFolder, "src/command/stop-signals.ts"));

function programOf(first: NodeJS.Signals, second: NodeJS.Signals, afterMs: number): string {
  return `
    import { firstStopSignal } from ${source};
    let nowMs = 5_000;
    performance.now = () => nowMs;
    const stopped = firstStopSignal(() => console.log("told of the second"));
    process.emit("${first}", "${first}");
    nowMs += ${afterMs};
    process.emit("${second}", "${second}");
    console.log(await stopped);
    process.exit(0);`;
}

const once = { exitCode: 0, stdout: "SIGTERM\n", stderr: "" };
const twice = { exitCode: 1, stdout: "told of the second\n", stderr: "" };

test.each([
  { name: "SIGTERM again within a second is the same request", second: "SIGTERM", afterMs: 999, want: once },
  { name: "SIGTERM again after a second exits immediately", second: "SIGTERM", afterMs: 1_000, want: twice },
  { name: "SIGINT soon after SIGTERM exits immediately", second: "SIGINT", afterMs: 1, want: twice },
] as const)("$name", async ({ second, afterMs, want }) => {
  const program = programOf("SIGTERM", second, afterMs);
  expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toEqual(want);
});

test("SIGINT that a terminal sends and npm forwards is one request", async () => {
  const program = programOf("SIGINT", "SIGINT", 0);
  const want = { ...once, stdout: "SIGINT\n" };
  expect(await runProgram(process.execPath, ["--input-type=module", "--eval", program])).toEqual(want);
});
