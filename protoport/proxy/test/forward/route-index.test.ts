import { expect, test } from "vitest";
import { parsePathTemplate, routesOverlap } from "../../../gateway/src/protocols/rest/rules/index.ts";
import { RouteIndex } from "../../src/forward/route-index.ts";

/** Templates that overlap in every way, with literals, wildcards, verbs, and a literal that equals a verb. */
const templates = [
  "/a",
  "/b",
  "/a/b",
  "/a/*",
  "/*",
  "/*/b",
  "/**",
  "/a/**",
  "/a/**/c",
  "/a/b/c",
  "/a/*/c",
  "/a:go",
  "/a%3Ago",
  "/a%3Ago:go",
  "/a/b:go",
  "/a/*:go",
  "/a/b%3Ago",
  "/**:go",
  "/a/**:go",
  "/%2A",
  "/%2A%2A",
  "/a/%2A/c",
];

const routes = templates.flatMap((text) =>
  ["GET", "POST", "*"].map((httpMethod) => ({ httpMethod, template: parsePathTemplate(text), owner: text })),
);

test.each(templates)("for %s, the index finds exactly the overlapping routes", (text) => {
  for (const httpMethod of ["GET", "HEAD", "POST"]) {
    const shape = { httpMethod, template: parsePathTemplate(text) };
    for (const route of routes) {
      const index = new RouteIndex<string>();
      // Another route at the same place, so that no node belongs to a single owner.
      index.add({ ...route, owner: "self" });
      index.add(route);
      expect(index.otherOwnerOf(shape, "self")).toBe(routesOverlap(route, shape) ? route.owner : undefined);
      expect(index.otherOwnerOf(shape, route.owner)).toBe(routesOverlap(route, shape) ? "self" : undefined);
    }
  }
});

test.each([
  { name: "with a common prefix", text: (at: number) => `/v1/things/{id}/x${at}` },
  { name: "below a common wildcard", text: (at: number) => `/v1/{id}/x${at}` },
  { name: "that begin with a wildcard", text: (at: number) => `/{id}/x${at}` },
])("each of 500 routes $name is compared with few others", ({ text }) => {
  const index = new RouteIndex<string>();
  let comparisons = 0;
  for (let at = 0; at < 500; at++) {
    const template = parsePathTemplate(text(at));
    const owner = at % 2 === 0 ? "even" : "odd";
    expect(index.otherOwnerOf({ httpMethod: "GET", template }, owner)).toBeUndefined();
    index.add({
      get httpMethod() {
        comparisons++;
        return "GET";
      },
      template,
      owner,
    });
  }
  expect(comparisons).toBeLessThan(500);
});

test("the index finds a template with 20,000 segments", () => {
  const index = new RouteIndex<string>();
  const template = parsePathTemplate("/a".repeat(20_000));
  index.add({ httpMethod: "GET", template, owner: "one" });
  expect(index.otherOwnerOf({ httpMethod: "GET", template }, "other")).toBe("one");
});
