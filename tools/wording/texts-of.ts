import { parseAst } from "rolldown/parseAst";
import { childrenOf, isNode, type Node } from "../mutants/syntax.ts";

/** What kind of text it is: messages are the strings of a program that people read. */
export type TextKind = "message" | "name" | "comment" | "test name";

/** A text that somebody reads, and where it is. */
export interface Text {
  readonly kind: TextKind;
  /** The text in one line. `${}` stands for each value that is inserted. */
  readonly text: string;
  /** For a message, what is called with it, such as `new TypeError` or `log.warn`; otherwise empty. */
  readonly callee: string;
  readonly line: number;
}

/** Strings of at least three words are prose, unless they are SQL or a part of a protocol. */
const prose =
  /^(?!\s*(?:SELECT|INSERT|DELETE|UPDATE|CREATE|ALTER|WITH|SET|BEGIN|PRAGMA|DROP|GRANT)\b)\S*[A-Za-z]\S* .*\S+ .*\S/su;

const declarations = new Set([
  "FunctionDeclaration",
  "ClassDeclaration",
  "VariableDeclarator",
  "TSInterfaceDeclaration",
  "TSTypeAliasDeclaration",
  "TSEnumDeclaration",
]);
const members = new Set(["MethodDefinition", "PropertyDefinition", "TSPropertySignature", "TSMethodSignature"]);
const testFunctions = /^(?:test|it|describe|suite)\b/;

/** Returns the texts of a source, in the order of its lines; those of tests only with `isTest`. */
export function textsOf(source: string, isTest: boolean): Text[] {
  const lineOf = lineFinder(source);
  const texts: Text[] = commentsOf(source).map(({ text, start }) => {
    return { kind: "comment", text, callee: "", line: lineOf(start) };
  });
  const program: unknown = parseAst(source, { lang: "ts" });
  const visit = (node: Node, callee: string): void => {
    if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") return;
    const called = calleeOf(node, source) ?? callee;
    const name = nameOf(node);
    if (name !== undefined) texts.push({ kind: "name", text: name, callee: "", line: lineOf(node.start) });
    const text = stringOf(node, source);
    if (text !== undefined && prose.test(text) && (!isTest || testFunctions.test(called))) {
      const kind = isTest ? "test name" : "message";
      texts.push({ kind, text: oneLine(text), callee: called, line: lineOf(node.start) });
    }
    for (const child of childrenOf(node)) visit(child, called);
  };
  if (isNode(program)) visit(program, "");
  return texts.toSorted((a, b) => a.line - b.line);
}

function lineFinder(source: string): (offset: number) => number {
  const starts = [...source.matchAll(/^/gm)].map(({ index }) => index);
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}

/** Returns the sentences of comments that have lines of their own. Lines that follow each other are one comment. */
function commentsOf(source: string): { text: string; start: number }[] {
  const comments = source.matchAll(/^[ \t]*\/\*\*?[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm);
  return [...comments].flatMap(({ 0: comment, index: start }) =>
    oneLine(comment.replace(/^[ \t]*(?:\/\*+|\*\/|\*|\/\/)|\*\/$/gm, ""))
      .split(/(?<=[.:?!]) (?=[A-Z@`])/)
      .filter((text) => prose.test(text))
      .map((text) => ({ text, start })),
  );
}

function calleeOf(node: Node, source: string): string | undefined {
  if (node.type !== "CallExpression" && node.type !== "NewExpression") return undefined;
  const { callee } = node;
  if (!isNode(callee)) return undefined;
  return `${node.type === "NewExpression" ? "new " : ""}${source.slice(callee.start, callee.end)}`.split("\n")[0];
}

function nameOf(node: Node): string | undefined {
  const named = declarations.has(node.type) ? node["id"] : members.has(node.type) ? node["key"] : undefined;
  return isNode(named) && named.type === "Identifier" && typeof named["name"] === "string" ? named["name"] : undefined;
}

function stringOf(node: Node, source: string): string | undefined {
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node.type !== "TemplateLiteral") return undefined;
  return source.slice(node.start + 1, node.end - 1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "${}");
}

/** Returns a text with a single space for each run of white space. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
