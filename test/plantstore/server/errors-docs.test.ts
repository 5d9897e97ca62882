import { Code } from "@connectrpc/connect";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { situations } from "../../contract/situations.ts";
import { projectFolder } from "../../support/process/child-program.ts";

/** A row of docs/errors.md. */
interface Documented {
  /** With `…` for what varies. */
  readonly message: string;
  readonly code: Code;
  readonly rest: string;
}

const documented: readonly Documented[] = readFileSync(join(projectFolder, "docs/errors.md"), "utf8")
  .split("\n")
  .flatMap((line) => {
    const [, message, name, number, rest] = /^\| `(.+?)` \| ([A-Z_]+) (\d+) \| (\S+) \|/.exec(line) ?? [];
    return message === undefined || rest === undefined ? [] : [{ message, name, code: Number(number), rest }];
  });

const sources: ReadonlyMap<string, string> = new Map(
  readdirSync(join(projectFolder, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/^(gen|client|cli)\//.test(file))
    .map((file) => [file, readFileSync(join(projectFolder, "src", file), "utf8")]),
);

// The text of an error where one is made: a literal in the place of the message.
const places = [
  /(?:new ConnectError|errorWithHttpStatus|unauthenticated)\(\s*(?<text>"[^"]*"|'[^']*'|`[^`]*`),/g,
  /HttpProblem\(\s*\d+,\s*(?<text>"[^"]*"|`[^`]*`)/g,
  /const message =\s*(?<text>"[^"]*"|`[^`]*`);/g,
  /(?:errorDescription|faultMessage)(?: =|:) (?<text>"[^"]*"|`[^`]*`)/g,
];

const inCode = [...sources].flatMap(([file, source]) =>
  places.flatMap((place) =>
    [...source.matchAll(place)].map(({ groups }) => ({ file, message: toPattern(groups?.["text"] ?? "") })),
  ),
);

function toPattern(literal: string): string {
  return literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, "…");
}

function matches(pattern: string, message: string): boolean {
  const parts = pattern.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(message);
}

test("the source has errors to look for", () => {
  expect(inCode.length).toBeGreaterThan(40);
});

test.each(inCode)('docs/errors.md has the message "$message" of $file', ({ message }) => {
  expect(documented.filter((row) => matches(row.message, message))).not.toEqual([]);
});

test.each(documented)('the message "$message" of docs/errors.md is in the source', ({ message }) => {
  const all = [...sources.values()].join("\n");
  expect(message.split("…").filter((part) => !all.includes(part))).toEqual([]);
});

test.each(documented)('the code of "$message" in docs/errors.md has its own number', ({ code, ...row }) => {
  const name = Code[code]?.replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
  expect(row).toMatchObject({ name });
});

const errors = Object.values(situations)
  .flat()
  .flatMap(({ name, want }) => (want.code === "ok" ? [] : [{ name, code: want.code, message: want.message ?? "" }]));

test.each(errors)("docs/errors.md tells of a server that $name", ({ code, message }) => {
  const rows = documented.filter((row) => matches(row.message, message));
  expect(rows.map((row) => Code[row.code]?.replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase())).toContain(code);
});
