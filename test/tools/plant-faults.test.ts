import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { faultsOf } from "../../tools/mutants/faults-of.ts";
import { faultsIn, type PlantedFault, moduleOf } from "../../tools/mutants/planted-fault.ts";
import { refusedFaults } from "../../tools/mutants/refused-faults.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";

describe("a fault that is planted", () => {
  test.each([
    ["a statement is lost", "statement", "close(a);", ["close(a);: ;"]],
    ["a disposal is lost", "statement", "using a = open();", ["using a = open();: const a = open();"]],
    ["a half of a condition is lost", "half", "f = a && b;", ["a && b: a", "a && b: (b)"]],
    ["a fallback is taken at once", "half", "f = a ?? b;", ["a ?? b: (b)"]],
    ["an await is lost", "await", "f = await a();", ["await a(): a()"]],
    ["a wait is lost", "await", "await a();", ["await a(): void a()"]],
    ["a member is lost", "member", "f = { a };", ["a: ...{}"]],
    [
      "another parameter of the same type is taken",
      "sibling",
      "function f(a: string, b: string, c: number) { return g(a, c); }",
      ["a: b"],
    ],
    [
      "another parameter of an object is taken",
      "sibling",
      "const f = ({ a, b }: { a: string; b: string }) => g({ a });",
      ["a: a: b"],
    ],
    [
      "another field of the same type is taken",
      "sibling",
      "class A { #a = 1; #b = 2; f() { return this.#a; } }",
      ["#a: #b"],
    ],
    ["another constant is taken", "sibling", "const aMs = 10; const bMsMax = 20; f = aMs;", ["aMs: bMsMax"]],
    ["a constant of another unit stays", "sibling", "const aMs = 10; const bBytes = 20; f = aMs;", []],
    [
      "steps of one object swap their order",
      "order",
      "this.a(); this.b();",
      ["this.a(); this.b();: this.b();\nthis.a();"],
    ],
    ["steps of two objects stay", "order", "a.f(); b.f();", []],
    ["steps of two fields stay", "order", "this.#a.f(c); this.#b.f(c);", []],
    ["steps that call one function for two objects stay", "order", "a.f(c()); b.f(c());", []],
    [
      "a step that waits swaps its order with another",
      "order",
      "await a.f(); b.f();",
      ["await a.f(); b.f();: b.f();\nawait a.f();"],
    ],
    ["steps that only read one object stay", "order", "a = x.readA(); b = x.getB();", []],
    ["steps that set two things stay", "order", "a.setB(c()); a.setB(d); a.addE(d);", []],
    ["listeners to two events stay", "order", 'a.on("b", c()); a.once("d", c());', []],
    ["orders of two kinds stay", "order", 'a.onOrder("b", c); a.onOrder("d", c);', []],
    [
      "listeners to one event swap their order",
      "order",
      'a.on("b", c); a.on("b", d);',
      ['a.on("b", c); a.on("b", d);: a.on("b", d);\na.on("b", c);'],
    ],
    [
      "an await whose promise a catch returns stays",
      "await",
      "async function f() { try { return await a(); } catch { return await b(); } }",
      ["await a(): a()"],
    ],
    [
      "an await is lost before a finally",
      "await",
      "async function f() { try { g(); } catch { return await b(); } finally { h(); } }",
      ["await b(): b()"],
    ],
    ["a comparison is off by one", "flip", "f = a < b;", ["a < b: a <= b"]],
    [
      "a query looks for other rows",
      "flip",
      "f = 'SELECT a WHERE b < 1';",
      ["'SELECT a WHERE b < 1': 'SELECT a WHERE b <= 1'"],
    ],
  ])("%s", (_, kind, source, want) => {
    const faults = faultsOf(source).filter((fault) => fault.kind === kind);
    expect(faults.map(({ start, end, code }) => `${source.slice(start, end)}: ${code}`)).toEqual(want);
  });
});

test.each([
  { file: "packages/gateway/src/protocols/rest/rules/route-table.ts", want: "gateway/protocols/rest/rules" },
  { file: "packages/rest-client/src/rest-calls.ts", want: "rest-client" },
  { file: "packages/gateway/src/create-gateway.ts", want: "gateway" },
  { file: "src/stores/sqlite/store.ts", want: "plantstore/stores/sqlite" },
  { file: "src/stores/delete-queue.ts", want: "plantstore/stores" },
])("$file is in the module $want", ({ file, want }) => {
  expect(moduleOf(file)).toBe(want);
});

test("a line is left alone whose comment says that no test can tell", () => {
  using folder = createTempFolder();
  const file = folder.file("a.ts");
  const lines = [
    "a();",
    "b(); // No test can tell: it says so.",
    "// No test can tell: it",
    "// says so.",
    "c();",
    "d();",
  ];
  writeFileSync(file, lines.join("\n"));
  expect(faultsIn(file).map(({ line, text }) => `${line} ${text}`)).toEqual(["1 a();", "6 d();"]);
});

test("faults that the compiler refuses are found, also beside one of syntax, which hides them", async () => {
  using folder = createTempFolder();
  mkdirSync(folder.file("src"));
  symlinkSync(resolve("node_modules"), folder.file("node_modules"));
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [] };
  writeFileSync(folder.file("tsconfig.json"), JSON.stringify({ compilerOptions }));
  const text = "export const one: number = 1;";
  writeFileSync(folder.file("src/one.ts"), text);
  const faults = ["2", '"1"', ""].map((change): PlantedFault => {
    return {
      kind: "member",
      file: "src/one.ts",
      room: "",
      line: 1,
      text,
      change,
      faulty: text.replace("1", change),
      block: 0,
    };
  });
  const refused = await refusedFaults(folder.path, faults);
  expect([...refused].map(({ change }) => change)).toEqual(["", '"1"']);
});
