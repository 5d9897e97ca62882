import { describe, expect, test } from "vitest";
import { mountPointOf } from "../../../src/stores/sqlite/file-names.ts";

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

  test("returns the root if there are no mounts", () => expect(mountPointOf("", "/data/plants.db")).toBe("/"));
});
