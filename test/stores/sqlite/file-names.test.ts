import { closeSync, linkSync, mkdirSync, openSync, rmSync, statSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp, restore } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { assertSingleName, mountPointOf } from "../../../src/stores/sqlite/file-names.ts";
import { checkSqliteStore, migrateSqlite, openSqliteDatabase } from "../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

/** Each way to open and close a store's file. */
// oxfmt-ignore
const uses: readonly { name: string; use: (file: string) => void | Promise<void> }[] = [
  { name: "a server", use: async (file) => await (await openSqliteStore({ file })).close() },
  { name: "a server that migrates",
    use: async (file) => await (await openSqliteStore({ file, migrates: true })).close() },
  { name: "check", use: (file) => void checkSqliteStore(file) },
  { name: "migrate", use: (file) => void migrateSqlite(file) },
  { name: "import, export or deletions",
    use: async (file) => await (await openSqliteDatabase(file))[Symbol.asyncDispose]() },
  { name: "backup", use: (file) => backUp(file, `${file}.copy`) },
  { name: "restore", use: (file) => {
      const other = `${file}.other`;
      openDatabase({ file: other, plantsWhenCreated: { first: 1n, last: 2n } }).close();
      restore(file, other);
    } },
];

function createStore(folder: TempFolder, link: (file: string) => string): { file: string; path: string } {
  mkdirSync(folder.file("volume"));
  const file = folder.file("volume/plants.db");
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 2n } }).close();
  return { file, path: link(file) };
}

describe("a file with a hard link", () => {
  test.each(uses)("is refused by $name, under both names", async ({ use }) => {
    using folder = createTempFolder();
    const { file, path } = createStore(folder, (old) => {
      linkSync(old, folder.file("second.db"));
      return folder.file("second.db");
    });
    const { ino } = statSync(file);
    for (const name of [file, path]) {
      await expect(async () => await use(name)).rejects.toThrow(
        new RegExp(
          `^cannot (open|restore) ${name}: the file has 2 names \\(hard links\\), each with its own write-ahead log: ` +
            `find them with "find \\S+ -xdev -inum ${ino}", remove the others, then start; ` +
            "keep the name by which the server ran last, never the name of a backup, which may have an old -wal$",
        ),
      );
    }
    rmSync(path);
    await use(file);
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });

  test("is refused if its path cannot be resolved", () => {
    using folder = createTempFolder();
    const { file } = createStore(folder, (old) => old);
    linkSync(file, folder.file("second.db"));
    using files = new DisposableStack();
    const descriptor = files.adopt(openSync(file, "r"), closeSync);
    rmSync(file);
    expect(() => assertSingleName(`/proc/self/fd/${descriptor}`)).toThrow("ENOENT");
  });

  test("can be restored as a backup", () => {
    using folder = createTempFolder();
    const { path } = createStore(folder, (file) => {
      backUp(file, folder.file("backup.db"));
      linkSync(folder.file("backup.db"), folder.file("second.db"));
      return folder.file("second.db");
    });
    restore(folder.file("plants.db"), path);
    expect(plantsIn(folder.file("plants.db"))).toEqual([1n, 2n]);
    openDatabase({ file: folder.file("plants.db") }).close();
  });
});

describe.each(
  // oxfmt-ignore
  [
    ["a symbolic link to the file", (folder: TempFolder) => {
        symlinkSync("volume/plants.db", folder.file("link.db"));
        return folder.file("link.db");
      }],
    ["a symbolic link to its folder", (folder: TempFolder) => {
        symlinkSync("volume", folder.file("link"));
        return folder.file("link/plants.db");
      }],
  ],
)("%s", (_name, link) => {
  test.each(uses)("lets $name use the file", async ({ use }) => {
    using folder = createTempFolder();
    const { file, path } = createStore(folder, () => link(folder));
    await use(path);
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });
});

/** Returns a mount point's line in /proc/self/mountinfo, as the kernel writes it. */
const line = (mountPoint: string, root = "/"): string =>
  `36 35 98:0 ${root} ${mountPoint} rw,noatime master:1 - ext4 /dev/root rw,errors=continue`;

const lines = [
  "22 1 0:20 / / rw,relatime - overlay overlay rw,lowerdir=/l",
  line("/data"),
  line("/data/plants.db", "/host/plants.db"),
  line("/data/with\\040space/plants.db"),
  line("/data/with\\011tab,\\012line,\\134backslash\\043hash"),
  line("/data/größe.db"),
  // Another mount over the same point, and mounts without an optional field.
  line("/srv"),
  line("/srv"),
  "40 35 0:45 /sub /srv/sub rw - tmpfs tmpfs rw",
  "",
];
const mountInfo = lines.join("\n");

describe("mountPointOf()", () => {
  test.each([
    { path: "/data/plants.db", mountPoint: "/data/plants.db" },
    { path: "/data/plants.db-wal", mountPoint: "/data" },
    { path: "/data/other.db", mountPoint: "/data" },
    { path: "/data", mountPoint: "/data" },
    { path: "/database/plants.db", mountPoint: "/" },
    { path: "/plants.db", mountPoint: "/" },
    { path: "/data/with space/plants.db", mountPoint: "/data/with space/plants.db" },
    { path: "/data/with\ttab,\nline,\\backslash#hash", mountPoint: "/data/with\ttab,\nline,\\backslash#hash" },
    { path: "/data/größe.db", mountPoint: "/data/größe.db" },
    { path: "/srv/plants.db", mountPoint: "/srv" },
    { path: "/srv/sub/folder/plants.db", mountPoint: "/srv/sub" },
  ])('returns "$mountPoint" for the path "$path"', ({ path, mountPoint }) => {
    expect(mountPointOf(mountInfo, path)).toBe(mountPoint);
    expect(mountPointOf(lines.toReversed().join("\n"), path)).toBe(mountPoint);
  });

  test("returns the root without mounts", () => expect(mountPointOf("", "/data/plants.db")).toBe("/"));
});
