import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { type Mutant, moduleOf, mutantsIn } from "../../../../tools/mutants/mutant.ts";
import { mutationsOf } from "../../../../tools/mutants/mutations-of.ts";
import { settingMutants } from "../../../../tools/mutants/setting-mutants.ts";
import { proxySettingNames } from "../../../../protoport/tools/proxy-setting-names.ts";
import { settings } from "../../../../src/server/settings.ts";
import { rejectedMutants } from "../../../../tools/mutants/rejected-mutants.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";

describe("mutationsOf", () => {
  test.each(
    // oxfmt-ignore
    [
      ["removes a statement", "statement", "close(a);", ["close(a);: ;"]],
      ["replaces using by const", "statement", "using a = open();", ["using a = open();: const a = open();"]],
      ["removes each half of a condition", "half", "f = a && b;", ["a && b: a", "a && b: (b)"]],
      ["replaces a default by its fallback", "half", "f = a ?? b;", ["a ?? b: (b)"]],
      ["removes an await", "await", "f = await a();", ["await a(): a()"]],
      ["replaces a statement's await by void", "await", "await a();", ["await a(): void a()"]],
      ["removes a member of a literal", "member", "f = { a };", ["a: ...{}"]],
      ["replaces a parameter by another of the same type", "sibling",
        "function f(a: string, b: string, c: number) { return g(a, c); }", ["a: b"]],
      ["replaces a destructured parameter by another of the same type", "sibling",
        "const f = ({ a, b }: { a: string; b: string }) => g({ a });", ["a: a: b"]],
      ["replaces a field by another of the same type", "sibling", "class A { #a = 1; #b = 2; f() { return this.#a; } }",
        ["#a: #b"]],
      ["replaces a constant by another of the same unit", "sibling", "const aMs = 10; const maxBMs = 20; f = aMs;",
        ["aMs: maxBMs"]],
      ["keeps a constant when the others have other units", "sibling", "const aMs = 10; const bBytes = 20; f = aMs;",
        []],
      ["swaps consecutive calls of one object", "order", "this.a(); this.b();",
        ["this.a(); this.b();: this.b();\nthis.a();"]],
      ["keeps the order of two objects' calls", "order", "a.f(); b.f();", []],
      ["keeps the order of two fields' calls", "order", "this.#a.f(c); this.#b.f(c);", []],
      ["keeps the order of two objects' calls with the same function in the arguments", "order", "a.f(c()); b.f(c());",
        []],
      ["swaps a step that awaits with the next one", "order", "await a.f(); b.f();",
        ["await a.f(); b.f();: b.f();\nawait a.f();"]],
      ["keeps the order of calls that only read an object", "order", "a = x.readA(); b = x.getB();", []],
      ["keeps the order of calls that set different properties", "order", "a.setB(c()); a.setB(d); a.addE(d);", []],
      ["keeps the order of listeners for different events", "order", 'a.on("b", c()); a.once("d", c());', []],
      ["keeps the order of registrations for different names", "order", 'a.onOrder("b", c); a.onOrder("d", c);', []],
      ["swaps listeners for the same event", "order", 'a.on("b", c); a.on("b", d);',
        ['a.on("b", c); a.on("b", d);: a.on("b", d);\na.on("b", c);']],
      ["keeps the await of a value that a catch block returns", "await",
        "async function f() { try { return await a(); } catch { return await b(); } }", ["await a(): a()"]],
      ["removes the await of a value that a catch block returns when a finally block follows", "await",
        "async function f() { try { g(); } catch { return await b(); } finally { h(); } }", ["await b(): b()"]],
      ["replaces a comparison by one that is off by one", "flip", "f = a < b;", ["a < b: a <= b"]],
      ["replaces a comparison in a query", "flip", "f = 'SELECT a WHERE b < 1';",
        ["'SELECT a WHERE b < 1': 'SELECT a WHERE b <= 1'"]],
    ],
  )("%s", (_, kind, source, expected) => {
    const mutations = mutationsOf(source).filter((mutation) => mutation.kind === kind);
    expect(mutations.map(({ start, end, code }) => `${source.slice(start, end)}: ${code}`)).toEqual(expected);
  });
});

test.each([
  { file: "protoport/gateway/src/protocols/rest/rules/route-table.ts", module: "protocols/rest/rules" },
  { file: "protoport/rest-client/src/rest-calls.ts", module: "rest-client" },
  { file: "protoport/gateway/src/create-gateway.ts", module: "gateway" },
  { file: "src/stores/sqlite/sqlite-store.ts", module: "plantstore/stores/sqlite" },
  { file: "src/stores/queue/delete-queue.ts", module: "plantstore/stores/queue" },
  { file: "src/stores/index.ts", module: "plantstore/stores" },
])('moduleOf maps $file to "$module"', ({ file, module }) => {
  expect(moduleOf(file)).toBe(module);
});

test.each(["equivalent mutant", "Equivalent mutant"])(
  'mutantsIn skips a line with the comment "%s: " behind or above it',
  (mark) => {
    using folder = createTempFolder();
    const file = folder.file("a.ts");
    const lines = ["a();", `b(); // ${mark}: why.`, `// ${mark}: a long`, "// reason.", "c();", "d();"];
    writeFileSync(file, lines.join("\n"));
    expect(mutantsIn(file).map(({ line, text }) => `${line} ${text}`)).toEqual(["1 a();", "6 d();"]);
  },
);

test("settingMutants returns a mutant for each plant store and proxy setting", () => {
  const names = new Set(settingMutants().map(({ change }) => change));
  for (const name of [...Object.keys(settings), ...proxySettingNames()]) expect(names).toContain(name);
});

test("rejectedMutants returns type errors despite another mutant's syntax error", async () => {
  using folder = createTempFolder();
  mkdirSync(folder.file("src"));
  symlinkSync(resolve("node_modules"), folder.file("node_modules"));
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [] };
  writeFileSync(folder.file("tsconfig.json"), JSON.stringify({ compilerOptions }));
  const text = "export const one: number = 1;";
  writeFileSync(folder.file("src/one.ts"), text);
  const mutants = ["2", '"1"', ""].map((change): Mutant => {
    const source = text.replace("1", change);
    return { kind: "member", file: "src/one.ts", module: "", line: 1, text, change, source, block: 0 };
  });
  const rejected = await rejectedMutants(folder.path, mutants);
  expect([...rejected].map(({ change }) => change)).toEqual(["", '"1"']);
});
