import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../../../../protoport/testing/src/process/child-program.ts";

const program = `
  const { startWatchdog } = await import("${projectFolder}protoport/testing/src/process/watchdog.ts");
  startWatchdog(500)("counts the stars");
  for (;;);
`;

test("the watchdog kills a process in an infinite loop, printing its task", async () => {
  const { exitCode, stderr } = await runProgram(process.execPath, ["-e", program]);
  expect({ exitCode, stderr }).toEqual({ exitCode: null, stderr: "blocked for 500 ms: counts the stars\n" });
});
