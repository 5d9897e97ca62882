import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isOwnFolder } from "../../src/command/compile-cache.ts";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";
import { startProgram } from "../../packages/testing/src/process/command-line.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";

const main = join(projectFolder, "src/command/main.ts");
const user = process.getuid?.() ?? 0;
const cache = `plantstore-compile-cache-${user}`;

/** Asks for the version, with a folder for temporary files, and resolves to the exit code. */
async function askVersion(temporary: string): Promise<number | null> {
  await using command = startProgram(process.execPath, [main, "--version"], projectFolder, { TMPDIR: temporary });
  return await command.end();
}

test("the command keeps compiled code where nobody but its user can write", async () => {
  using folder = createTempFolder();
  expect(await askVersion(folder.path)).toBe(0);
  expect(readdirSync(folder.path)).toEqual([cache]);
  expect(statSync(folder.file(cache)).mode & 0o777).toBe(0o700);
  expect(readdirSync(folder.file(cache))).not.toEqual([]);
});

test("the command keeps no compiled code in a folder that others can write to, and starts", async () => {
  using folder = createTempFolder();
  // Regardless of the umask.
  for (const name of [cache, "node-compile-cache"]) {
    mkdirSync(folder.file(name));
    chmodSync(folder.file(name), 0o777);
  }
  expect(await askVersion(folder.path)).toBe(0);
  expect(readdirSync(folder.file(cache))).toEqual([]);
  expect(readdirSync(folder.file("node-compile-cache"))).toEqual([]);
});

test("the command starts where it can make no folder", async () => {
  using folder = createTempFolder();
  expect(await askVersion(folder.file("missing"))).toBe(0);
});

test.each([
  { name: "one that its group can write to", make: (path: string) => chmodSync(path, 0o720), want: false },
  { name: "one that everybody can write to", make: (path: string) => chmodSync(path, 0o702), want: false },
  { name: "one that everybody can read", make: (path: string) => chmodSync(path, 0o755), want: true },
])("a folder is one's own: $name: $want", ({ make, want }) => {
  using folder = createTempFolder();
  mkdirSync(folder.file("it"));
  make(folder.file("it"));
  expect(isOwnFolder(folder.file("it"), user)).toBe(want);
});

test("the folder of another user, a link and a file are nobody's own folder", () => {
  using folder = createTempFolder();
  // Only root can give a folder away, and everybody else finds one of root's.
  if (user === 0) chownSync(folder.path, 65_534, 65_534);
  expect(isOwnFolder(user === 0 ? folder.path : "/", user)).toBe(false);
  mkdirSync(folder.file("target"), { mode: 0o700 });
  symlinkSync(folder.file("target"), folder.file("link"));
  expect(isOwnFolder(folder.file("link"), user)).toBe(false);
  writeFileSync(folder.file("file"), "", { mode: 0o600 });
  expect(isOwnFolder(folder.file("file"), user)).toBe(false);
});
