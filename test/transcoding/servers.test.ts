import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readCases, readKnownFailing, type Result } from "../../conformance/runner/index.ts";
import { servers } from "../../conformance/servers/servers.ts";
import { tableOf } from "../../conformance/servers/table.ts";
import { projectFolder } from "../support/process/child-program.ts";

const folder = join(projectFolder, "conformance/servers/known-failing");
const cases = readCases();
const ids = new Set(cases.map(({ id }) => id));

function knownFailing(id: string): readonly string[] {
  return readKnownFailing(readFileSync(join(folder, `${id}.txt`), "utf8"));
}

test("each server has a list of known failures, and each list a server", () => {
  expect(readdirSync(folder).toSorted()).toEqual(servers.map(({ id }) => `${id}.txt`).toSorted());
});

test.each(servers)("what $name is known to fail are cases", ({ id }) => {
  expect(knownFailing(id).filter((each) => !ids.has(each))).toEqual([]);
});

test("nothing is known to fail here", () => {
  expect(knownFailing("plantstore-gateway")).toEqual([]);
});

test.each(servers)("the table of the README has what the list of $name says", ({ id, name }) => {
  const failing = knownFailing(id);
  const failed = (level: string): number =>
    cases.filter((each) => each.level === level && failing.includes(each.id)).length;
  const readme = readFileSync(join(projectFolder, "conformance/README.md"), "utf8");
  const row = readme.split("\n").find((line) => line.startsWith(`| ${name} |`));
  const cells = row?.split("|").map((cell) => cell.trim());
  expect([cells?.[3], cells?.[6]]).toEqual([String(failed("must")), String(failed("should"))]);
});

function result(level: "must" | "should", outcome: Result["outcome"], ...problems: readonly string[]): Result {
  const [each] = cases;
  if (each === undefined) throw new Error("there is no case");
  return { case: { ...each, level }, outcome, problems, ms: 1 };
}

test("a table counts what is kept, failed, refused as a fault of the server, and not run", () => {
  const results = [
    result("must", "pass"),
    result("must", "alternative"),
    result("must", "known", "expected the status 4xx, got 500 with nothing"),
    result("must", "fail", "f: expected 7, got 8"),
    result("should", "fixed"),
    result("should", "fail", "expected the status 4xx, got 500 with nothing"),
    result("should", "not run"),
  ];
  expect(
    tableOf([{ server: { name: "a" }, results }])
      .split("\n")
      .at(-2),
  ).toBe("| a | 2 | 2 | 1 | 1 | 1 | 1 |");
});
