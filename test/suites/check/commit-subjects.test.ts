import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
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

test("CONTRIBUTING.md shows ten subjects of this form", () => {
  const [, examples = ""] = readFileSync(join(projectFolder, "CONTRIBUTING.md"), "utf8").split("Examples:\n\n");
  const subjects = Array.from(examples.matchAll(/^- (.*)$/gm), ([, subject = ""]) => subject);
  expect(subjects).toHaveLength(10);
  expect(subjects.filter((subject) => problemOf(subject) !== undefined)).toEqual([]);
});

test.each([
  { subject: "Fix it", problem: /^must have the form/ },
  { subject: "queue: refuse late deletions", problem: /^must have the form/ },
  { subject: "queue: Refuse late deletions.", problem: /^must have the form/ },
  { subject: `queue: Refuse ${"x".repeat(maxCharacters)}`, problem: /more than 72 characters/ },
  { subject: "a: Do b c d e f g h i", problem: /more than 8 words/ },
])("the subject $subject is refused", ({ subject, problem }) => {
  expect(problemOf(subject)).toMatch(problem);
});
