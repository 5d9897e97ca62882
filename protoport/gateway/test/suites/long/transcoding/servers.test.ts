import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readCases, readKnownFailing, type Result } from "../../../../../conformance/runner/index.ts";
import { pictureOf } from "../../../../../conformance/servers/picture.ts";
import { backends, servers } from "../../../../../conformance/servers/servers.ts";
import { tableOf } from "../../../../../conformance/servers/table.ts";
import { projectFolder, runProgram } from "@protoport/testing/process";

const folder = join(projectFolder, "protoport/conformance/servers/known-failing");
const cases = readCases();
const ids = new Set(cases.map(({ id }) => id));

const knownFailing = (id: string): readonly string[] =>
  readKnownFailing(readFileSync(join(folder, `${id}.txt`), "utf8"));

test("each server has a list of known failures, and vice versa", () =>
  expect(readdirSync(folder).toSorted()).toEqual([...servers, ...backends].map(({ id }) => `${id}.txt`).toSorted()));

test.each([...servers, ...backends])("the known failures of $name are ids of existing cases", ({ id }) => {
  expect(knownFailing(id).filter((each) => !ids.has(each))).toEqual([]);
});

// An Express guard on a path must not be passed by percent-encoding, so a mounted gateway matches literals as sent.
const mountedFailures = ["path.equivalent.letter", "path.equivalent.version", "path.equivalent.literal-in-variable"];

test.each(servers.filter(({ id }) => id.startsWith("protoport-gateway")))(
  "$name has no known failures, except encoded literals when mounted",
  ({ id }) => expect(knownFailing(id)).toEqual(id === "protoport-gateway-mounted" ? mountedFailures : []),
);

test("the command rejects an unknown server", async () => {
  const main = join(projectFolder, "protoport/conformance/servers/main.ts");
  const { exitCode, stderr } = await runProgram(process.execPath, [main, "no-such-gateway"]);
  expect([stderr, exitCode]).toEqual([expect.stringContaining('unknown server "no-such-gateway"'), 1]);
});

const shown = servers.map((server) => ({ server, results: recorded(server) }));

test("the README's table and chart match the known failures", () => {
  const readme = readFileSync(join(projectFolder, "protoport/conformance/servers/README.md"), "utf8");
  const [, table] = /<!-- table -->\n\n(.*)\n<!-- \/table -->/s.exec(readme) ?? [];
  expect(table).toBe(tableOf(shown));
  expect(readFileSync(join(projectFolder, "protoport/docs/pictures/transcoding.svg"), "utf8")).toBe(pictureOf(shown));
});

/** Returns the results that a server had when its list was written. */
function recorded({ id, without }: (typeof servers)[number]): readonly Result[] {
  const problems = new Map(
    readFileSync(join(folder, `${id}.txt`), "utf8")
      .split("\n")
      .map((line) => [line.split(" # ")[0] ?? "", line.replace(/^\S+ # (?:must|should): /, "")]),
  );
  return cases.map((each): Result => {
    const problem = problems.get(each.id);
    const isSkipped = each.needs.some((need) => without.includes(need));
    const outcome = isSkipped ? "not run" : problem === undefined ? "pass" : "known";
    return { case: each, outcome, problems: problem === undefined ? [] : [problem], ms: 0 };
  });
}

function result(level: "must" | "should", outcome: Result["outcome"], ...problems: readonly string[]): Result {
  const [each] = cases;
  if (each === undefined) throw new Error("no cases");
  return { case: { ...each, level }, outcome, problems, ms: 1 };
}

test("the table counts passed, failed, 5xx and skipped cases", () => {
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
