import { describe, expect, test } from "vitest";
import { phraseFinder, phrasesOf, roughPattern } from "../../../../tools/wording/phrases.ts";
import { pageTextsOf, type TextKind, textsOf, titlesOf } from "../../../../tools/wording/texts-of.ts";

function textsOfKind(kind: TextKind, source: string, isTest: boolean = false): string[] {
  return textsOf(source, isTest).flatMap((text) => (text.kind === kind ? `${text.line} ${text.text}` : []));
}

describe("textsOf", () => {
  test.each([
    ["a string of three words", 'fail("cannot open it");', ["1 cannot open it"]],
    [
      "a template without its values",
      "throw new Error(\n  `PORT is not ${port} but\n   more`,\n);",
      ["2 PORT is not ${} but more"],
    ],
    ["no string of two words", 'fail("cannot open");', []],
    ["no SQL", 'query("SELECT id FROM plants"); query(" AND a FROM b WHERE c");', []],
    ["no code", "emit(`const a = ${b};`); emit(`if (a) return b;`); emit(`} else if (a) {`);", []],
  ])("finds %s as a message", (_name, source, texts) => {
    expect(textsOfKind("message", source)).toEqual(texts);
  });

  test("finds sentences in block comments, line comments and comments behind code", () => {
    const source =
      "/**\n * Opens the\n * file. Closes it too.\n */\n\nf(); // Why it does.\n// One more\n// sentence here.\n";
    expect(textsOfKind("comment", source)).toEqual([
      "2 Opens the file.",
      "3 Closes it too.",
      "6 Why it does.",
      "7 One more sentence here.",
    ]);
  });

  test("finds declared names", () => {
    const source = "const a = 1;\nfunction b() {}\nclass C { #d = 1; e() {} }\ninterface F { g: string }\ntype H = 1;";
    expect(textsOfKind("name", source)).toEqual(["1 a", "2 b", "3 C", "3 d", "3 e", "4 F", "4 g", "5 H"]);
  });

  test("finds complete test names with the values in each row", () => {
    const source = `const rows = [{ name: "reads an idle socket", text: "none of these words" }];
describe("a server at work", () => {
  test.each(["a row of one"])("is up and running", () => { expect("not the name").toBe("nor this one"); });
  test.each(rows)("$name", () => {});
  test.each([["a", 7]])("gets %s as %i", () => {});
});
export const others = [{ name: "closes an idle connection" }];`;
    expect(textsOfKind("test name", source, true)).toEqual([
      "1 a server at work > reads an idle socket",
      "3 a server at work > is up and running",
      "5 a server at work > gets a as 7",
      "7 closes an idle connection",
    ]);
  });
});

test("titlesOf finds only the titles that test() and it() get", () => {
  const source = `describe("a server", () => {
  test.each(rows)("refuses $name", () => {});
  test("closes " + what, () => {});
  it("opens", () => { check("no title", () => {}); });
});`;
  expect(titlesOf(source).map(({ line, text }) => `${line} ${text}`)).toEqual(["2 refuses $name", "4 opens"]);
});

test("pageTextsOf finds headings, cells and sentences, without code and link targets", () => {
  const page =
    "# One title\n\nIt [opens](a.md)\n`x y`. It closes.\n\n- an item\n- another\n\n| a | b c |\n|---|---|\n\n```sh\nls\n```\n";
  const texts = pageTextsOf(page).filter(({ text }) => /\w/.test(text));
  expect(texts.map(({ line, kind, text }) => `${line} ${kind} ${text}`)).toEqual([
    "1 cell # One title",
    "3 docs It [opens] .",
    "4 docs It closes.",
    "6 docs - an item",
    "7 docs - another",
    "9 cell a",
    "9 cell b c",
  ]);
});

describe("phrases", () => {
  const page = `
| write | instead of |
|---|---|
| "is not", "must be" | \`is no\` except \`is no longer\`, \`is no more\` |
| immediately | \`at once\`, \`forthwith\` |
| a term | a word in plain text |
| a path, as in \`/a\` | |
`;
  const phrases = phrasesOf(page);
  const find = phraseFinder(phrases);

  test("are read from the tables' last column", () => {
    expect(phrases.map(({ phrase, replacement }) => `${phrase}: ${replacement}`)).toEqual([
      'is no: "is not", "must be"',
      "at once: immediately",
      "forthwith: immediately",
    ]);
  });

  const rows = [
    { name: "are found in a message", kind: "message", text: "the port is no number", found: ["is no"] },
    { name: "are not found in an exception", kind: "comment", text: "It is no longer open.", found: [] },
    {
      name: "are found regardless of case",
      kind: "test name",
      text: "At once, and forthwith",
      found: ["at once", "forthwith"],
    },
    { name: "are not found in a longer word", kind: "comment", text: "look at oncelers", found: [] },
    { name: "are found in the words of a name", kind: "name", text: "closeAtOnce", found: ["at once"] },
    { name: "are not found in a name if they begin within a word", kind: "name", text: "flatOnce", found: [] },
  ] as const;

  test.each(rows)("$name", ({ kind, text, found }) => {
    const offences = find({ kind, text, context: "", line: 1 });
    expect(offences.map(({ phrase }) => phrase.phrase)).toEqual(found);
  });

  test.each([
    { name: "two line comments", source: "// closed at\n// once" },
    { name: "two lines of a block comment", source: " * at\n * once" },
    { name: "a name", source: "closeAtOnce" },
    { name: "capitals", source: "At once" },
  ])("in $name match the rough pattern", ({ source }) => {
    expect(roughPattern(phrases).test(source)).toBe(true);
  });
});
