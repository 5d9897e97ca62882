import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { projectFiles } from "../../../testing/src/project-files.ts";
import { readPage } from "./page-blocks.ts";

/** A code that errors can have, as a page about errors documents it. */
export interface Documented {
  /** The message, with `…` for variable parts, in tables that list messages. */
  readonly message: string | undefined;
  /** The code's name, such as NOT_FOUND, and its number. */
  readonly name: string;
  readonly code: Code;
  /** The HTTP status of REST, if the page has it. */
  readonly rest: string | undefined;
  readonly errorCodes: readonly string[];
}

/** Returns the codes on a page, from rows of a message, and from rows of an identifier with its codes. */
export const documentedIn = (page: string): readonly Documented[] =>
  readPage(page)
    .split("\n")
    .flatMap((line) => [...messagesOfRow(line), ...codesOfIdentifier(line)]);

function messagesOfRow(line: string): readonly Documented[] {
  const [, message, name = "", number, codes = ""] =
    /^\| `(.+?)` \| ([A-Z_]+) (\d+) \| ((?:`ERR_\w+`(?:, )?)+) \|/.exec(line) ?? [];
  if (message === undefined) return [];
  return [{ message, name, code: Number(number), rest: undefined, errorCodes: codesIn(codes) }];
}

function codesOfIdentifier(line: string): readonly Documented[] {
  const [, errorCode, cell = ""] = /^\| `(ERR_\w+)` \| ([A-Z_]+ \d+, .*?) \|/.exec(line) ?? [];
  if (errorCode === undefined) return [];
  const [usual = ""] = cell.split(",");
  return cell.split("<br>").map((part) => {
    const [, code = usual, rest] = /^([A-Z_]+ \d+)?(?:, )?(\d{3})?(?:: .+)?$/.exec(part) ?? [];
    const [name = "", number] = code.split(" ");
    return { message: undefined, name, code: Number(number), rest, errorCodes: [errorCode] };
  });
}

export const codesIn = (text: string): readonly string[] => [...new Set(text.match(/\bERR_[A-Z_0-9]+\b/g))].toSorted();
// Matches an error's text in the source: a literal in the message's position, after an optional identifier.
const text = String.raw`(?<text>"[^"]*"|'[^']*'|` + "`[^`]*`)";
const places = [
  String.raw`(?:problem|unauthenticated|errorOf)\(\s*"(?<code>ERR_\w+)",\s*${text},?`,
  String.raw`errorDescription = ${text}`,
].map((pattern) => new RegExp(pattern, "g"));

const toPattern = (literal: string): string => literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, "…");

/** Returns whether a message matches a documented one. */
export function matches(pattern: string, message: string): boolean {
  const parts = pattern.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(message);
}

export const codeName = (code: Code): string | undefined =>
  Code[code]?.replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();

export interface ErrorPage {
  readonly page: string;
  /** The sources of errors, by file. */
  readonly sources: ReadonlyMap<string, string>;
  readonly tests: string;
  /** The identifiers, by the file that declares them. */
  readonly unions: readonly { readonly file: string; readonly codes: readonly string[] }[];
}

/** Declares tests that a page documents exactly the identifiers in sources, and the messages of those in its tables. */
export function checkErrors({ page, sources, tests, unions }: ErrorPage): void {
  const documented = documentedIn(page);
  const messages = documented.flatMap((row) => (row.message === undefined ? [] : [{ ...row, message: row.message }]));
  const withMessages = new Set(messages.flatMap(({ errorCodes }) => errorCodes));
  const inCode = [...sources].flatMap(([file, source]) =>
    places.flatMap((place) =>
      [...source.matchAll(place)].flatMap(({ groups }) => {
        const errorCode = groups?.["code"];
        const isListed = errorCode === undefined || withMessages.has(errorCode);
        return isListed ? [{ file, message: toPattern(groups?.["text"] ?? ""), errorCode }] : [];
      }),
    ),
  );

  test("the patterns find error messages in the source", () =>
    expect(inCode.length).toBeGreaterThan(messages.length / 2));

  test.each(inCode)('the message "$message" in $file is documented', ({ message, errorCode }) => {
    const rows = messages.filter((row) => matches(row.message, message));
    expect(rows).not.toEqual([]);
    if (errorCode !== undefined) expect(rows.flatMap((row) => row.errorCodes)).toContain(errorCode);
  });

  test.each(messages)(`the message "$message" in ${page} is in the source`, ({ message }) => {
    const all = [...sources.values()].join("\n");
    expect(message.split("…").filter((part) => !all.includes(part))).toEqual([]);
  });

  test.each(documented)(`the code $name of $errorCodes in ${page} has its number`, ({ code, name }) => {
    expect(name).toBe(codeName(code));
  });

  const declared = unions.flatMap(({ codes }) => codes);

  test(`${page} explains exactly the declared identifiers`, () => {
    expect(new Set(declared).size).toBe(declared.length);
    expect(codesIn(readPage(page))).toEqual(declared.toSorted());
  });

  test.each(unions)("all identifiers in $file are used", ({ file, codes }) => {
    const texts = [...sources].filter(([other]) => other !== file).map(([, source]) => source);
    const used = new Set(codesIn(texts.join("\n")));
    expect(codes.filter((code) => !used.has(code))).toEqual([]);
  });

  test.each(declared)("the identifier %s is covered by a test", (code) => {
    expect(tests).toMatch(new RegExp(`"${code}"|\\b${code}:|\\[${code}\\]`));
  });
}

/** Returns the text of all tests in a folder. */
export const testsIn = (folder: string): string =>
  projectFiles(folder)
    .filter((file) => file.endsWith(".test.ts") || file.endsWith("situations.ts"))
    .map((file) => readPage(file))
    .join("\n");

/** Returns the identifiers in a source, which declares a union of them. */
export function unionIn(sources: ReadonlyMap<string, string>, file: string): ErrorPage["unions"][number] {
  const source = sources.get(file) ?? "";
  return { file, codes: [...source.matchAll(/"(ERR_\w+)"/g)].map(([, code = ""]) => code) };
}
