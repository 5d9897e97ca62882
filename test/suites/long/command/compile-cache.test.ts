import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isOwnFolder } from "../../../../src/command/compile-cache.ts";
import { createTempFolder, projectFolder, startProgram } from "@protoport/testing/process";

const main = join(projectFolder, "src/command/main.ts");
const user = process.getuid?.() ?? 0;
const cache = `plantstore-compile-cache-${user}`;

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

test.each([
  ["false for a folder that its group can write to", (path: string) => chmodSync(path, 0o720), false],
  ["false for a folder that everyone can write to", (path: string) => chmodSync(path, 0o702), false],
  ["true for a folder that everyone can read", (path: string) => chmodSync(path, 0o755), true],
])("isOwnFolder returns %s", (_name, make, want) => {
  using folder = createTempFolder();
  mkdirSync(folder.file("it"));
  make(folder.file("it"));
  expect(isOwnFolder(folder.file("it"), user)).toBe(want);
});

test("isOwnFolder returns false for others' folders, symbolic links and files", () => {
  using folder = createTempFolder();
  // Only root can change the owner. For everyone else, / belongs to root.
  if (user === 0) chownSync(folder.path, 65_534, 65_534);
  expect(isOwnFolder(user === 0 ? folder.path : "/", user)).toBe(false);
  mkdirSync(folder.file("target"), { mode: 0o700 });
  symlinkSync(folder.file("target"), folder.file("link"));
  expect(isOwnFolder(folder.file("link"), user)).toBe(false);
  writeFileSync(folder.file("file"), "", { mode: 0o600 });
  expect(isOwnFolder(folder.file("file"), user)).toBe(false);
});
