import { expect, test } from "vitest";
import { parsePathTemplate } from "../../../../../../src/protocols/rest/rules/path-template.ts";
import { routesOverlap, RouteTable } from "../../../../../../src/protocols/rest/rules/route-table.ts";

/** Returns all lists with up to `length` items, the last of which is in `last`. */
function listsOf(items: readonly string[], last: readonly string[], length: number): readonly string[] {
  const endings = last.map((each) => `/${each}`);
  if (length === 1) return endings;
  const shorter = listsOf(items, last, length - 1);
  return [...new Set([...endings, ...items.flatMap((item) => shorter.map((each) => `/${item}${each}`))])];
}

// Each position has four kinds of segments, and the last also has values that look like a verb.
const templates = listsOf(["a", "b", "*", "**"], ["a", "b", "*", "**", "a%3Av", "%3Av"], 3)
  .filter((template) => template.split("**").length <= 2)
  .flatMap((template) => [template, `${template}:v`, `${template}:w`])
  .concat("/");

// Paths of four segments are longer than two templates with three segments can require.
const endings = ["a", "b", "c", "", "a%3Av", "%3Av"].flatMap((text) => [text, `${text}:v`, `${text}:w`]);
const paths = listsOf(["a", "b", "c", ""], endings, 4);

/** Returns which paths a table with only this template matches. */
function matchesOf(template: string): readonly boolean[] {
  const table = new RouteTable<string>();
  table.add("GET", parsePathTemplate(template), template);
  return paths.map((path) => table.match("GET", path).kind === "binding");
}

test("routesOverlap() returns true only if some path matches both templates", () => {
  const all = templates.map((text) => ({ text, template: parsePathTemplate(text), matches: matchesOf(text) }));
  const wrong: string[] = [];
  for (const one of all) {
    for (const other of all) {
      const path = paths[one.matches.findIndex((matches, at) => matches && other.matches[at] === true)];
      const [first, second] = [one, other].map(({ template }) => ({ httpMethod: "GET", template }));
      if (first === undefined || second === undefined) throw new TypeError("a pair has two items");
      if (routesOverlap(first, second) !== (path !== undefined)) wrong.push(`${one.text} ${other.text}: ${path}`);
    }
  }
  expect(templates.length).toBeGreaterThan(300);
  expect(wrong).toEqual([]);
});

test.each([
  { one: "GET", other: "GET", want: true },
  { one: "GET", other: "POST", want: false },
  { one: "*", other: "POST", want: true },
  { one: "PURGE", other: "*", want: true },
  { one: "HEAD", other: "GET", want: true },
  { one: "HEAD", other: "POST", want: false },
  { one: "HEAD", other: "HEAD", want: true },
])("routesOverlap() returns $want for $one and $other with equal templates", ({ one, other, want }) => {
  const template = parsePathTemplate("/a/{b}");
  expect(routesOverlap({ httpMethod: one, template }, { httpMethod: other, template })).toBe(want);
  expect(routesOverlap({ httpMethod: other, template }, { httpMethod: one, template })).toBe(want);
  expect(routesOverlap({ httpMethod: one, template }, { httpMethod: other, template: parsePathTemplate("/b/a") })).toBe(
    false,
  );
});
