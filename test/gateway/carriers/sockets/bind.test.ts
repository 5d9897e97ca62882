import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { putBack, removeStaleSocket } from "../../../../src/gateway/carriers/sockets/bind.ts";
import { createTempFolder } from "../../../support/process/temp-folder.ts";

/** What was seen at a path, before another process replaced it. */
function lookAt(path: string) {
  writeFileSync(path, "before");
  return lstatSync(path, { bigint: true });
}

describe("what has replaced a socket that was left behind keeps its name", () => {
  test("where it can be linked", () => {
    using folder = createTempFolder();
    const path = folder.file("s");
    writeFileSync(path, "now");
    expect(removeStaleSocket(path, lookAt(folder.file("other")))).toBe(false);
    expect(readFileSync(path, "utf8")).toBe("now");
    expect(readdirSync(folder.path).toSorted()).toEqual(["other", "s"]);
  });

  test("where it cannot, as a folder cannot", () => {
    using folder = createTempFolder();
    const path = folder.file("s");
    mkdirSync(path);
    expect(removeStaleSocket(path, lookAt(folder.file("other")))).toBe(false);
    expect(lstatSync(path).isDirectory()).toBe(true);
    expect(readdirSync(folder.path).toSorted()).toEqual(["other", "s"]);
  });

  test("unless a third has used the name meanwhile, which is left alone", () => {
    using folder = createTempFolder();
    const [aside, path] = [folder.file("aside"), folder.file("s")];
    writeFileSync(aside, "second");
    writeFileSync(path, "third");
    putBack(aside, path);
    expect(readFileSync(path, "utf8")).toBe("third");
    expect(readdirSync(folder.path)).toEqual(["s"]);
  });
});
