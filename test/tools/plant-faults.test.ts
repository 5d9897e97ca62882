import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { faultsOf } from "../../tools/plant-faults/faults-of.ts";
import { faultsIn } from "../../tools/plant-faults/planted-fault.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

describe("a fault that is planted", () => {
  test.each([
    { name: "a statement is lost", source: "close(a);", want: ["close(a);: ;"] },
    { name: "a disposal is lost", source: "using a = open();", want: ["using a = open();: const a = open();"] },
    { name: "a half of a condition is lost", source: "f = a && b;", want: ["a && b: a", "a && b: (b)"] },
    { name: "a fallback is taken at once", source: "f = a ?? b;", want: ["a ?? b: (b)"] },
    { name: "an await is lost", source: "f = await a();", want: ["await a(): a()"] },
    { name: "a wait is lost", source: "await a();", want: ["await a(): void a()"] },
    { name: "a member is lost", source: "f = { a };", want: ["a: ...{}"] },
    {
      name: "another parameter of the same type is taken",
      source: "function f(a: string, b: string, c: number) { return g(a, c); }",
      want: ["a: b"],
    },
    {
      name: "another parameter of an object is taken",
      source: "const f = ({ a, b }: { a: string; b: string }) => g({ a });",
      want: ["a: ...{}", "a: a: b"],
    },
    {
      name: "another field of the same type is taken",
      source: "class A { #a = 1; #b = 2; f() { return this.#a; } }",
      want: ["#a: #b"],
    },
    { name: "another constant is taken", source: "const aMs = 10; const bMs = 20; f = aMs;", want: ["aMs: bMs"] },
    {
      name: "steps swap their order",
      source: "this.a(); this.b();",
      want: ["this.a(); this.b();: this.b();\nthis.a();"],
    },
    { name: "steps that have nothing to do with each other stay", source: "a.f(); b.f();", want: [] },
    { name: "a comparison is off by one", source: "f = a < b;", want: ["a < b: a <= b"] },
    {
      name: "a query looks for other rows",
      source: "f = 'SELECT a WHERE b < 1';",
      want: ["'SELECT a WHERE b < 1': 'SELECT a WHERE b <= 1'"],
    },
  ])("$name", ({ source, want }) => {
    const faults = faultsOf(source).map(({ start, end, code }) => `${source.slice(start, end)}: ${code}`);
    const others = /^(f = .*|close\(a\);|.*\(\);|\d+): /;
    expect(faults.filter((fault) => want.includes(fault) || !others.test(fault))).toEqual(want);
  });
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
