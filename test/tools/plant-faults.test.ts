import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { faultsOf } from "../../tools/plant-faults/faults-of.ts";
import { faultsIn, roomOf } from "../../tools/plant-faults/planted-fault.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

describe("a fault that is planted", () => {
  test.each([
    { name: "a statement is lost", kind: "statement", source: "close(a);", want: ["close(a);: ;"] },
    {
      name: "a disposal is lost",
      kind: "statement",
      source: "using a = open();",
      want: ["using a = open();: const a = open();"],
    },
    { name: "a half of a condition is lost", kind: "half", source: "f = a && b;", want: ["a && b: a", "a && b: (b)"] },
    { name: "a fallback is taken at once", kind: "half", source: "f = a ?? b;", want: ["a ?? b: (b)"] },
    { name: "an await is lost", kind: "await", source: "f = await a();", want: ["await a(): a()"] },
    { name: "a wait is lost", kind: "await", source: "await a();", want: ["await a(): void a()"] },
    { name: "a member is lost", kind: "member", source: "f = { a };", want: ["a: ...{}"] },
    {
      name: "another parameter of the same type is taken",
      kind: "sibling",
      source: "function f(a: string, b: string, c: number) { return g(a, c); }",
      want: ["a: b"],
    },
    {
      name: "another parameter of an object is taken",
      kind: "sibling",
      source: "const f = ({ a, b }: { a: string; b: string }) => g({ a });",
      want: ["a: a: b"],
    },
    {
      name: "another field of the same type is taken",
      kind: "sibling",
      source: "class A { #a = 1; #b = 2; f() { return this.#a; } }",
      want: ["#a: #b"],
    },
    {
      name: "another constant is taken",
      kind: "sibling",
      source: "const aMs = 10; const bMsMax = 20; f = aMs;",
      want: ["aMs: bMsMax"],
    },
    {
      name: "a constant of another unit stays",
      kind: "sibling",
      source: "const aMs = 10; const bBytes = 20; f = aMs;",
      want: [],
    },
    {
      name: "steps of one object swap their order",
      kind: "order",
      source: "this.a(); this.b();",
      want: ["this.a(); this.b();: this.b();\nthis.a();"],
    },
    { name: "steps of two objects stay", kind: "order", source: "a.f(); b.f();", want: [] },
    { name: "steps of two fields stay", kind: "order", source: "this.#a.f(c); this.#b.f(c);", want: [] },
    {
      name: "steps that call one function for two objects stay",
      kind: "order",
      source: "a.f(c()); b.f(c());",
      want: [],
    },
    {
      name: "a step that waits swaps its order with another",
      kind: "order",
      source: "await a.f(); b.f();",
      want: ["await a.f(); b.f();: b.f();\nawait a.f();"],
    },
    { name: "steps that only read one object stay", kind: "order", source: "a = x.readA(); b = x.getB();", want: [] },
    { name: "steps that set two things stay", kind: "order", source: "a.setB(c()); a.setB(d); a.addE(d);", want: [] },
    { name: "listeners to two events stay", kind: "order", source: 'a.on("b", c()); a.once("d", c());', want: [] },
    { name: "orders of two kinds stay", kind: "order", source: 'a.onOrder("b", c); a.onOrder("d", c);', want: [] },
    {
      name: "listeners to one event swap their order",
      kind: "order",
      source: 'a.on("b", c); a.on("b", d);',
      want: ['a.on("b", c); a.on("b", d);: a.on("b", d);\na.on("b", c);'],
    },
    {
      name: "an await whose promise a catch returns stays",
      kind: "await",
      source: "async function f() { try { return await a(); } catch { return await b(); } }",
      want: ["await a(): a()"],
    },
    {
      name: "an await is lost before a finally",
      kind: "await",
      source: "async function f() { try { g(); } catch { return await b(); } finally { h(); } }",
      want: ["await b(): b()"],
    },
    { name: "a comparison is off by one", kind: "flip", source: "f = a < b;", want: ["a < b: a <= b"] },
    {
      name: "a query looks for other rows",
      kind: "flip",
      source: "f = 'SELECT a WHERE b < 1';",
      want: ["'SELECT a WHERE b < 1': 'SELECT a WHERE b <= 1'"],
    },
  ])("$name", ({ kind, source, want }) => {
    const faults = faultsOf(source).filter((fault) => fault.kind === kind);
    expect(faults.map(({ start, end, code }) => `${source.slice(start, end)}: ${code}`)).toEqual(want);
  });
});

test.each([
  { file: "src/gateway/rest/route-table.ts", want: "gateway/rest" },
  { file: "src/gateway/rest-client/rest-calls.ts", want: "gateway/rest-client" },
  { file: "src/gateway/create-gateway.ts", want: "gateway" },
  { file: "src/plantstore/plants/sqlite/store.ts", want: "plantstore/plants/sqlite" },
  { file: "src/plantstore/plants/delete-queue.ts", want: "plantstore/plants" },
])("$file is in the room $want", ({ file, want }) => {
  expect(roomOf(file)).toBe(want);
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
