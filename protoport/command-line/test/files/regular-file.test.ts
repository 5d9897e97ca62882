import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readRegularFile, readRegularFileSync } from "../../src/files/index.ts";
import { createTempFolder } from "@protoport/testing/process";

const limitBytes = 5;

const readers = [
  { reader: "readRegularFile", read: readRegularFile },
  {
    reader: "readRegularFileSync",
    read: (path: string, maxBytes: number) => Promise.resolve().then(() => readRegularFileSync(path, maxBytes)),
  },
];

describe.each(readers)("$reader", ({ read }) => {
  test.each([
    { name: "an empty file", text: "" },
    { name: "a file of the maximum size", text: "12345" },
  ])("reads $name, directly or through a symbolic link", async ({ text }) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), text);
    symlinkSync(folder.file("file"), folder.file("link"));
    expect(String(await read(folder.file("file"), limitBytes))).toBe(text);
    expect(String(await read(folder.file("link"), limitBytes))).toBe(text);
    expect(folder.open()).toEqual([]);
  });

  test.each<[name: string, make: (path: string) => unknown, problem: string]>([
    ["a named pipe without a writer", (path) => execFileSync("mkfifo", [path]), "is not a regular file"],
    ["a device", (path) => symlinkSync("/dev/zero", path), "is not a regular file"],
    ["a folder", (path) => symlinkSync("/", path), "is not a regular file"],
    ["a larger file", (path) => writeFileSync(path, "123456"), "is larger than 5 bytes"],
  ])("refuses %s with an error that contains the path", async (_name, make, problem) => {
    using folder = createTempFolder();
    const path = folder.file("file");
    make(path);
    await expect(read(path, limitBytes)).rejects.toThrow(`${path} ${problem}`);
    expect(folder.open()).toEqual([]);
  });

  test("throws the system's error when the file is missing", () =>
    expect(read("/nowhere/file", limitBytes)).rejects.toThrow("ENOENT: no such file or directory"));
});
