import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../../protoport/testing/src/process/child-program.ts";
import { startProgram } from "../../../../protoport/testing/src/process/command-line.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";

// The package requires a future Node version, as a package may require a newer version than the user's.

test.each([
  { name: "by default, npm warns about a package that requires a newer Node", npmrc: false, warns: true },
  { name: "in this project, npm does not warn about a package that requires a newer Node", npmrc: true, warns: false },
])("$name", async ({ npmrc, warns }) => {
  using folder = createTempFolder();
  mkdirSync(folder.file("newer"));
  writeFileSync(folder.file("package.json"), '{ "dependencies": { "newer": "file:newer" } }');
  writeFileSync(
    folder.file("newer/package.json"),
    '{ "name": "newer", "version": "1.0.0", "engines": { "node": ">=1000" } }',
  );
  if (npmrc) cpSync(join(projectFolder, ".npmrc"), folder.file(".npmrc"));
  const environment = { npm_config_cache: folder.file("cache"), npm_config_userconfig: folder.file("user.npmrc") };
  const args = ["install", "--offline", "--no-audit", "--no-fund"];
  await using npm = startProgram("npm", args, folder.path, environment);
  expect(await npm.end()).toBe(0);
  expect(npm.stdout()).toContain("added 1 package");
  expect(npm.stderr().includes("EBADENGINE")).toBe(warns);
});
