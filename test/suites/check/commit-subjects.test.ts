import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";

// The subjects of new commits have the form that CONTRIBUTING.md shows.

/** The last commit whose subject is not checked. */
const checkedAfter = "394fba41b56f8073c1f7f268007f4a09ab97026e";

const maxCharacters = 72;
const maxWords = 8;

function problemOf(subject: string): string | undefined {
  const [, what] = /^[^:\s][^:]*: (\p{Lu}.*[^.])$/u.exec(subject) ?? [];
  if (what === undefined) return "must have the form `area: Verb what`";
  if (subject.length > maxCharacters) return `has more than ${maxCharacters} characters`;
  return what.split(" ").length > maxWords ? `has more than ${maxWords} words after the area` : undefined;
}

/** Returns the subjects of new commits; none in an archive, or in a clone without the history. */
function newSubjects(): readonly string[] {
  const range = `${checkedAfter}..HEAD`;
  const options = { cwd: projectFolder, encoding: "utf8" } as const;
  const { status, stdout } = spawnSync("git", ["log", "--no-merges", "--format=%s", range], options);
  return status === 0 ? stdout.split("\n").filter(Boolean) : [];
}

test("new commits have subjects of the documented form", () => {
  const wrong = newSubjects().map((subject) => ({ subject, problem: problemOf(subject) }));
  expect(wrong.filter(({ problem }) => problem !== undefined)).toEqual([]);
});
