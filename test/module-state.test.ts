import { readFileSync } from "node:fs";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { allSourceFiles, sourcePath } from "./support/source-files.ts";
import { childrenOf, isNode, isType, type Node, nodesIn } from "../tools/mutants/syntax.ts";

/** Module variables, by file. */
const moduleVariables: Readonly<Record<string, readonly string[]>> = {
  "http/exchange/buffered-body.ts": ["sharedBlock", "sharedBytes"],
  "http/listen/date-fields.ts": ["dateSecond", "date"],
  "grpc-handlers/calls/write-response.ts": ["keptWriter"],
  "protobuf/messages/codegen/compile-function.ts": ["isAllowed"],
  "protocols/compression/window-budget.ts": ["reservedBytes"],
  "telemetry/logs/plain-lines.ts": ["timeMs", "timeText"],
};

/** Module constants to whose members a function assigns, by file. Caches whose comments state their size. */
const assignedConstants: Readonly<Record<string, readonly string[]>> = {
  "protobuf/messages/binary/string-reader.ts": ["shortTexts"],
  "http-engine/http1/response-head.ts": ["statusLines"],
};

/** A declaration for one or more module variables. */
interface Declaration {
  readonly kind: string;
  readonly names: readonly string[];
}

function declarationsIn(text: string, program: Node): Declaration[] {
  return nodesIn(program["body"]).flatMap((statement) => {
    const exported = statement.type === "ExportNamedDeclaration" ? nodesIn(statement["declaration"]) : [statement];
    return exported
      .filter(({ type }) => type === "VariableDeclaration")
      .map(({ kind, declarations }) => {
        const names = nodesIn(declarations)
          .flatMap(({ id }) => nodesIn(id))
          .map(nameIn(text));
        return { kind: String(kind), names };
      });
  });
}

/** Returns a variable's name, or the source of a destructuring pattern. */
function nameIn(text: string): (node: Node) => string {
  return ({ start, end, name }) => (typeof name === "string" ? name : text.slice(start, end));
}

function parse(text: string): Node {
  const program: unknown = parseAst(text, { lang: "ts" });
  if (!isNode(program)) throw new TypeError("the source has no syntax tree");
  return program;
}

function moduleVariablesIn(text: string, program: Node = parse(text)): string[] {
  return declarationsIn(text, program).flatMap(({ kind, names }) => (kind === "const" ? [] : names));
}

/** Returns the module constants that have state because a function assigns a member. */
function assignedConstantsIn(text: string, program: Node = parse(text)): string[] {
  const owners = new Set(targetsIn(program, false).flatMap(ownerOf));
  return declarationsIn(text, program)
    .flatMap(({ kind, names }) => (kind === "const" ? names : []))
    .filter((name) => owners.has(name));
}

/** Returns the targets of the assignments in the functions of a node, which may itself be in a function. */
function targetsIn(node: Node, isInFunction: boolean, found: Node[] = []): Node[] {
  if (isType(node)) return found;
  const { type, left, argument } = node;
  const target = type === "AssignmentExpression" ? left : type === "UpdateExpression" ? argument : undefined;
  if (isInFunction) found.push(...nodesIn(target));
  for (const child of childrenOf(node)) targetsIn(child, isInFunction || type.includes("Function"), found);
  return found;
}

/** Returns the variable whose value contains a member. */
function ownerOf({ type, object, property }: Node): string[] {
  // An assignment to lastIndex only sets the position at which a regular expression starts.
  const isMember = type === "MemberExpression" && !nodesIn(property).some(({ name }) => name === "lastIndex");
  if (!isMember) return [];
  return nodesIn(object).flatMap((owner) => (typeof owner["name"] === "string" ? [owner["name"]] : ownerOf(owner)));
}

test("source files have no state in module variables", () => {
  for (const file of allSourceFiles()) {
    const text = readFileSync(sourcePath(file), "utf8");
    const program = parse(text);
    expect.soft(moduleVariablesIn(text, program), file).toEqual(moduleVariables[file] ?? []);
    expect.soft(assignedConstantsIn(text, program), file).toEqual(assignedConstants[file] ?? []);
  }
});

test.each([
  { line: "let last;", want: ["last"] },
  { line: "export let last: string | undefined;", want: ["last"] },
  { line: "var last = 1;", want: ["last"] },
  { line: "let\n  last = 1;", want: ["last"] },
  { line: "let date = 0, more = 1;", want: ["date", "more"] },
  { line: "const first = 0; let second = 1;", want: ["second"] },
  { line: "let [first] = [];", want: ["[first]"] },
])('the variables in the module "$line" are found', ({ line, want }) => {
  expect(moduleVariablesIn(`const a = 1;\n${line}\n`)).toEqual(want);
});

test.each([
  "{ let last; }",
  "const letters = 1;",
  "// let last;",
  "class A {\n  #last = 1;\n}",
  "for (let a of []) {}",
])('no module variable is found in "%s"', (line) => {
  expect(moduleVariablesIn(line)).toEqual([]);
});

test.each([
  "function f() { state.last = 1; }",
  "function f() { state.count++; }",
  "const f = () => (state.a.b ??= 1);",
  "class A { set a(value) { state[value] = 1; } }",
])('an assignment to a member of a constant is found in "%s"', (line) => {
  expect(assignedConstantsIn(`export const state = {};\n${line}`)).toEqual(["state"]);
});

test.each([
  "state.last = 1;",
  "function f() { return state.last === 1; }",
  "function f() { last.state = 1; }",
  "function f() { state.lastIndex = 1; }",
  "class A { state = 1; constructor() { this.state = 2; } }",
])('no assignment to a member of a constant is found in "%s"', (line) => {
  expect(assignedConstantsIn(`const state = {};\n${line}`)).toEqual([]);
});
