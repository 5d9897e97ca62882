import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

// V8's tag for compiled code depends on all flags.
const printTag = 'process.on("exit", () => console.log("tag", process.getBuiltinModule("v8").cachedDataVersionTag()))';
const preload = `--import=data:text/javascript,${encodeURIComponent(printTag)}`;
const flag = "--no-allocation-site-pretenuring";

test("the commands set --no-allocation-site-pretenuring", () => {
  const [withoutFlag, withFlag, plantstore, protoport] = [
    tagOf("--eval", "0"),
    tagOf(flag, "--eval", "0"),
    tagOf("src/command/main.ts", "--version"),
    tagOf("protoport/proxy/src/command/main.ts", "--version"),
  ];
  expect([plantstore, protoport]).toEqual([withFlag, withFlag]);
  expect(withoutFlag).not.toBe(withFlag);
});

function tagOf(...args: readonly string[]): string | undefined {
  const root = join(import.meta.dirname, "../..");
  return /^tag .*$/m.exec(execFileSync(process.execPath, [preload, ...args], { cwd: root, encoding: "utf8" }))?.[0];
}
