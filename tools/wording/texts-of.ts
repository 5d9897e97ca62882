import { parseAst } from "rolldown/parseAst";
import { childrenOf, isNode, type Node } from "../../protoport/testing/src/syntax.ts";
import { testNamesOf, testTitlesOf } from "./test-names.ts";

/** The kind of a text. A message is a program's string for people. A "docs" or "cell" text is a part of a page. */
export type TextKind = "message" | "name" | "comment" | "test name" | "test title" | "commit subject" | "docs" | "cell";

/** A text that people read, with its position. */
export interface Text {
  readonly kind: TextKind;
  /** The text in one line. `${}` stands for each interpolated value. */
  readonly text: string;
  /**
   * The context of the text. A message's context is the function that is called with it, such as `new TypeError`. A
   * name's context is its declaration. A comment sentence's context is the sentence before it. A test name's context is
   * "row" if the test title is in another file. A page sentence's context is the sentence with its code. Any other text
   * has an empty context.
   */
  readonly context: string;
  /** The line, counted from 1. */
  readonly line: number;
}

/** Strings with at least three words are prose. */
const prose = /^\s*\S*[A-Za-z]\S* .*\S+ .*\S/su;

/** Strings that start with an SQL statement or clause, or contain SQL. */
const sql =
  /^\W*(?:SELECT|INSERT|DELETE|UPDATE|CREATE|ALTER|WITH|SET|BEGIN|PRAGMA|DROP|GRANT|REVOKE|COPY|LOCK|EXISTS|RETURN|EXECUTE|DECLARE|CASE|DO|AND|ISOLATION)\b|\b(?:FROM|WHERE|VALUES|RETURNING|ORDER BY|PRIMARY KEY|NOT NULL|IS NULL)\b|::\w|= ANY\(/;

/**
 * Strings that are not written for people, because they contain operators, calls, JavaScript blocks, header fields,
 * tags or flags.
 */
const code =
  /=>|===?|!==|\+\+|>>>|[;{}](?:\s|\\n)*$|!=|^\s*(?!\$\{)[{}]|\b(?:const|let) \w+ =|\b(?:if|for|while|switch) \(|\breturn [^.]*;|[\w}]\((?![)\w]*\))|\\r\\n|;\s?(?:q|charset|\w+)=|<\w+ \w+=|^-\w |^(?:from [\w.]+ import|except|HTTP\/1\.1|PRI \*) |: f"|: `Bearer/;

const declarations = new Set([
  "FunctionDeclaration",
  "ClassDeclaration",
  "VariableDeclarator",
  "TSInterfaceDeclaration",
  "TSTypeAliasDeclaration",
  "TSEnumDeclaration",
]);
const members = new Set(["MethodDefinition", "PropertyDefinition", "TSPropertySignature", "TSMethodSignature"]);
/**
 * Returns a TypeScript source's texts, in the order of its lines. The texts are comments, declared names and messages.
 * With `isTest`, the texts are test names instead of messages.
 */
export function textsOf(source: string, isTest: boolean): Text[] {
  const lineOf = lineFinder(source);
  const texts: Text[] = commentsOf(source).map(({ text, before, start }) => {
    return { kind: "comment", text, context: before, line: lineOf(start) };
  });
  const program: unknown = parseAst(source, { lang: "ts" });
  const visit = (node: Node, callee: string): void => {
    if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") return;
    const called = calleeOf(node, source) ?? callee;
    const name = nameOf(node);
    if (name !== undefined)
      texts.push({ kind: "name", text: name, context: lineAt(source, node.start), line: lineOf(node.start) });
    const text = stringOf(node, source);
    if (!isTest && text !== undefined && prose.test(text) && isMessage(text)) {
      texts.push({ kind: "message", text: oneLine(text), context: called, line: lineOf(node.start) });
    }
    for (const child of childrenOf(node)) visit(child, called);
  };
  if (isNode(program)) {
    visit(program, "");
    const testNames = isTest ? testNamesOf(program, source, (node) => stringOf(node, source)) : [];
    for (const { text, start, isRow } of testNames.filter((name) => prose.test(name.text))) {
      texts.push({ kind: "test name", text: oneLine(text), context: isRow ? "row" : "", line: lineOf(start) });
    }
  }
  return texts.toSorted((a, b) => a.line - b.line);
}

/** Returns the titles of a TypeScript source's tests, each without its groups' titles, as written. */
export function titlesOf(source: string): Text[] {
  const lineOf = lineFinder(source);
  const program: unknown = parseAst(source, { lang: "ts" });
  if (!isNode(program)) return [];
  return testTitlesOf(program, source, (node) => stringOf(node, source)).map(({ text, start }) => {
    return { kind: "test title", text: oneLine(text), context: "", line: lineOf(start) };
  });
}

/** Returns a Markdown page's texts, without code and link targets. */
export function pageTextsOf(page: string): Text[] {
  const lineOf = lineFinder(page);
  const visible = page
    .replaceAll(/^ *```[\s\S]*?^ *```|<!--[\s\S]*?-->/gm, blank)
    .replaceAll(/(`+)(?!`)[^`]+\1|(?<=\])\([^)]*\)/g, blank);
  // Matches table cells and headings, which each have one line, and the lines in a paragraph or a list item.
  const blocks = visible.matchAll(/(?<=^\|.*)[^|\n]+|^#.*|(?:^(?![|#]).*\S.*\n?(?! *[-*|#] | *\d+\. ))+/gm);
  return [...blocks].flatMap(({ 0: block, index: start }) => {
    const kind = /^#|^\|/.test(visible.slice(visible.lastIndexOf("\n", start) + 1)) ? "cell" : "docs";
    return sentencesOf(block).map(({ text, at, length }): Text => {
      const context = oneLine(page.slice(start + at, start + at + length));
      return { kind, text, context, line: lineOf(start + at) };
    });
  });
}

function blank(part: string): string {
  return part.replaceAll(/[^\n]/g, " ");
}

function lineFinder(source: string): (offset: number) => number {
  const starts = [...source.matchAll(/^/gm)].map(({ index }) => index);
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}

function lineAt(source: string, offset: number): string {
  const end = source.indexOf("\n", offset);
  return source.slice(source.lastIndexOf("\n", offset) + 1, end < 0 ? source.length : end).trim();
}

/** Returns the comment sentences. Line comments on consecutive lines are one comment. */
function commentsOf(source: string): { text: string; before: string; start: number }[] {
  const comments = source.matchAll(/^[ \t]*\/\*\*?[\s\S]*?\*\/|(?:^[ \t]*\/\/.*(?:\n|$))+|(?<=\S[ \t]+)\/\/ .*/gm);
  return [...comments].flatMap(({ 0: comment, index: start }) => {
    const content = comment.replaceAll(/^[ \t]*(?:\/\*+|\*\/|\*|\/\/)|\*\/$/gm, (mark) => " ".repeat(mark.length));
    return sentencesOf(content)
      .map(({ text, at }, index, all) => ({ text, before: all[index - 1]?.text ?? "", start: start + at }))
      .filter(({ text }) => prose.test(text));
  });
}

/** Returns a text's sentences, each in one line, with their offsets. */
function sentencesOf(text: string): { text: string; at: number; length: number }[] {
  const sentences = text.matchAll(/\S[\s\S]*?(?:(?<=[.?!])(?=\s+[A-Z@`])|\s*$)/g);
  return [...sentences].map(({ 0: sentence, index: at }) => ({ text: oneLine(sentence), at, length: sentence.length }));
}

function isMessage(text: string): boolean {
  return !sql.test(text) && !code.test(text);
}

function calleeOf(node: Node, source: string): string | undefined {
  // A string in a function is not an argument of the call to which the function is passed.
  if (/Function/.test(node.type)) return "";
  if (node.type !== "CallExpression" && node.type !== "NewExpression") return undefined;
  const { callee } = node;
  if (!isNode(callee)) return undefined;
  return `${node.type === "NewExpression" ? "new " : ""}${source.slice(callee.start, callee.end)}`.split("\n")[0];
}

function nameOf(node: Node): string | undefined {
  const named = declarations.has(node.type) ? node["id"] : members.has(node.type) ? node["key"] : undefined;
  if (!isNode(named) || !/^(?:Private)?Identifier$/.test(named.type)) return undefined;
  return typeof named["name"] === "string" ? named["name"] : undefined;
}

function stringOf(node: Node, source: string): string | undefined {
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node.type !== "TemplateLiteral") return undefined;
  return source.slice(node.start + 1, node.end - 1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "${}");
}

/** Replaces each run of white space by a single space. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** Returns any file's lines, for files whose syntax is not parsed. */
export function lineTextsOf(content: string): Text[] {
  return content.split("\n").map((text, index) => ({ kind: "comment", text, context: "", line: index + 1 }));
}
