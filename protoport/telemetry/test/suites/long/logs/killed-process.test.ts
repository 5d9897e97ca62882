import { execPath } from "node:process";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "@protoport/testing/process";

const log = pathToFileURL(join(projectFolder, "protoport/telemetry/src/logs/log.ts")).href;

/** Returns the lines of a program that logs two lines in each of 100 turns, and is then killed in the same turn. */
async function linesOfKilled(change: string): Promise<readonly unknown[]> {
  const program = `
    const { symbols } = await import("pino");
    const { openLog } = await import(${JSON.stringify(log)});
    const log = openLog("info");
    ${change}
    let turn = 0;
    setImmediate(function next() {
      turn++;
      log.info({ turn }, "first");
      log.info({ turn, err: new Error("second") }, "second");
      if (turn === 100) process.kill(process.pid, "SIGKILL");
      setImmediate(next);
    });`;
  const { stderr } = await runProgram(execPath, ["--input-type=module", "--eval", program], {
    folder: join(projectFolder, "protoport/telemetry"),
  });
  return stderr
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { turn, msg }: { turn: number; msg: string } = JSON.parse(line);
      return `${String(turn)} ${msg}`;
    });
}

test("a killed process keeps the same lines as with pino alone", async () => {
  const withoutHook = 'Reflect.set(log, symbols.hooksSym, {}); log.level = "info";';
  const [own, ofPino] = await Promise.all(["", withoutHook].map(linesOfKilled));
  expect([own, own?.slice(0, 4)]).toEqual([ofPino, ["1 first", "1 second", "2 first", "2 second"]]);
  expect(own?.length).toBeGreaterThanOrEqual(198);
});
