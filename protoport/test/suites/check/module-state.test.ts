import { expect, test } from "vitest";
import { assignedConstantsIn, moduleVariablesIn } from "../../../testing/src/module-state.ts";
import { protoportTree } from "../../support/source-files.ts";

/** Module variables, by file. */
const moduleVariables: Readonly<Record<string, readonly string[]>> = {
  "gateway/http/exchange/buffered-body.ts": ["sharedBlock", "sharedBytes"],
  "gateway/engine/http-server.ts": ["dateSecond", "date"],
  "grpc-handlers/calls/write-response.ts": ["keptWriter"],
  "gateway/protobuf/messages/codegen.ts": ["isAllowed"],
  "gateway/protocols/compression/decode-pieces.ts": ["reservedBytes"],
  "telemetry/logs/plain-lines.ts": ["timeMs", "timeText"],
};

/** Module constants to whose members a function assigns, by file. Caches whose comments state their size. */
const assignedConstants: Readonly<Record<string, readonly string[]>> = {
  "gateway/protobuf/messages/binary/binary-reader.ts": ["shortTexts"],
  "gateway/engine/http1/response-head.ts": ["statusLines"],
};

test("source files have no state in module variables", () => {
  for (const file of protoportTree.files) {
    const text = protoportTree.textOf(file);
    expect.soft(moduleVariablesIn(text), file).toEqual(moduleVariables[file] ?? []);
    expect.soft(assignedConstantsIn(text), file).toEqual(assignedConstants[file] ?? []);
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
