import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isOwnFolder } from "../../src/command/compile-cache.ts";
import { createTempFolder } from "@protoport/testing/process";

const user = process.getuid?.() ?? 0;

test("isOwnFolder creates a missing folder that only its owner can use", () => {
  using folder = createTempFolder();
  expect(isOwnFolder(folder.file("new"), user)).toBe(true);
  expect(statSync(folder.file("new")).mode & 0o777).toBe(0o700);
  expect(isOwnFolder(folder.file("missing/new"), user)).toBe(false);
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
