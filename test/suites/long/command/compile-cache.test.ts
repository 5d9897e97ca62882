import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTempFolder, projectFolder, startProgram } from "@protoport/testing/process";

const main = join(projectFolder, "src/command/main.ts");
const cache = `plantstore-compile-cache-${process.getuid?.()}`;

/** Runs `plantstore --version` with a folder for temporary files, and resolves to the exit code. */
async function runVersion(temporary: string): Promise<number | null> {
  await using command = startProgram(process.execPath, [main, "--version"], projectFolder, { TMPDIR: temporary });
  return await command.end();
}

test("the command caches compiled code in a folder private to its user", async () => {
  using folder = createTempFolder();
  expect(await runVersion(folder.path)).toBe(0);
  expect(readdirSync(folder.path)).toEqual([cache]);
  expect(statSync(folder.file(cache)).mode & 0o777).toBe(0o700);
  expect(readdirSync(folder.file(cache))).not.toEqual([]);
});

test("the command starts without a cache in a folder others can change", async () => {
  using folder = createTempFolder();
  // The mode is set with chmod, because mkdir applies the umask.
  for (const name of [cache, "node-compile-cache"]) {
    mkdirSync(folder.file(name));
    chmodSync(folder.file(name), 0o777);
  }
  expect(await runVersion(folder.path)).toBe(0);
  expect(readdirSync(folder.file(cache))).toEqual([]);
  expect(readdirSync(folder.file("node-compile-cache"))).toEqual([]);
});

test("the command starts when it cannot create the cache folder", async () => {
  using folder = createTempFolder();
  expect(await runVersion(folder.file("missing"))).toBe(0);
});
