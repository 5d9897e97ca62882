import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { isMultiSegment, parsePathTemplate, type PathTemplate, printPathTemplate, type TemplateSegment
} from "../../../../src/protocols/rest/rules/path-template.ts";

// In this shorthand "*" and "**" are wildcards and everything else is literal.
function shape(template: PathTemplate): object {
  const segments = template.segments.map((segment) => (segment.kind === "literal" ? segment.text : segment.kind));
  const variables = template.variables.map(({ fieldPath, start, end }) => [fieldPath.join("."), start, end]);
  return { segments, variables, verb: template.verb };
}

test.each(
  // oxfmt-ignore
  [
    ["/", [""], [], undefined],
    ["/orders", ["orders"], [], undefined],
    ["/orders/{id}", ["orders", "*"], [["id", 1, 2]], undefined],
    ["/orders/{id=*}", ["orders", "*"], [["id", 1, 2]], undefined],
    ["/orders/{id}:cancel", ["orders", "*"], [["id", 1, 2]], "cancel"],
    ["/orders:count", ["orders"], [], "count"],
    ["/*/**", ["*", "**"], [], undefined],
    ["/v1/{name=**}", ["v1", "**"], [["name", 1, 2]], undefined],
    ["/{name=**}:x", ["**"], [["name", 0, 1]], "x"],
    ["/v1/{name=shelves/*/books/*}", ["v1", "shelves", "*", "books", "*"], [["name", 1, 5]], undefined],
    ["/v1/{a.b.c}/x/{d_1=y/**}/z", ["v1", "*", "x", "y", "**", "z"], [["a.b.c", 1, 2], ["d_1", 3, 5]], undefined],
    ["/{x=only}", ["only"], [["x", 0, 1]], undefined],
    ["/a%2Fb/%7Bx%7D", ["a/b", "{x}"], [], undefined],
    ["/$meta/a.b/~x/@y/a=b;c,d", ["$meta", "a.b", "~x", "@y", "a=b;c,d"], [], undefined],
    ["/%2A", ["*"], [], undefined],
  ],
)("parsePathTemplate() parses %s into segments, variables and a verb", (text, segments, variables, verb) => {
  expect(shape(parsePathTemplate(text))).toEqual({ segments, variables, verb });
});

test("parsePathTemplate() distinguishes an escaped star from a wildcard", () =>
  expect(parsePathTemplate("/%2A").segments).toEqual([{ kind: "literal", text: "*" }]));

test.each([
  { text: "", why: "is empty", want: 'expected "/" at character 1' },
  { text: "orders", why: "does not start with a slash", want: 'expected "/" at character 1' },
  { text: "/orders/", why: "ends in a slash", want: "expected a literal" },
  { text: "//orders", why: "has an empty segment", want: "expected a literal" },
  { text: "/orders/{id", why: "leaves a variable open", want: 'expected "}" at character 12' },
  { text: "/orders/id}", why: "closes a variable that is not open", want: "expected" },
  { text: "/orders/{}", why: "has a variable without a field", want: "expected a field name" },
  { text: "/orders/{1d}", why: "has a field name that starts with a digit", want: "expected a field name" },
  { text: "/orders/{a.}", why: "has a dot at the end of a field path", want: "expected a field name" },
  { text: "/orders/{a..b}", why: "has an empty name in a field path", want: "expected a field name" },
  { text: "/orders/{a-b}", why: "has a dash in a field name", want: 'expected "}"' },
  { text: "/orders/{id=}", why: "has a variable without segments", want: "expected a literal" },
  { text: "/orders/{id=/a}", why: "has a variable that starts with a slash", want: "expected a literal" },
  { text: "/orders/{id=a/}", why: "has a variable that ends in a slash", want: "expected a literal" },
  { text: "/orders/{a={b}}", why: "nests variables", want: "variables must not be nested at character 12" },
  { text: "/orders/{id}x", why: "has text after a variable", want: 'expected "/", ":" or the end' },
  { text: "/orders/x{id}", why: "has text before a variable", want: 'expected "/", ":" or the end' },
  { text: "/orders/{a}{b}", why: "has two variables in one segment", want: 'expected "/", ":" or the end' },
  { text: "/orders/*x", why: "has text after a wildcard", want: 'expected "/", ":" or the end' },
  { text: "/orders/***", why: "has three stars", want: 'expected "/", ":" or the end' },
  { text: "/**/a/**", why: 'has two "**"', want: '"**" must appear only once at character 7' },
  { text: "/{a=**}/{b=**}", why: 'has two "**" in variables', want: '"**" must appear only once' },
  { text: "/{a}/{a}", why: "binds a field twice", want: "field a is bound more than once at character 7" },
  { text: "/{a.b}/{a}", why: "binds a message and one of its fields", want: "field a is bound more than once" },
  { text: "/{a}/{a.b}", why: "binds a field of a message that is bound", want: "field a.b is bound more than once" },
  { text: "/orders:", why: "has an empty verb", want: "expected a verb" },
  { text: "/orders:a:b", why: "has two verbs", want: "expected the end at character 10" },
  { text: "/orders:a/b", why: "has segments after the verb", want: "expected the end at character 10" },
  { text: "/orders/{id:x}", why: "has a verb inside a variable", want: 'expected "}"' },
  { text: "/orders/{id}:{x}", why: "has a variable as the verb", want: "expected a verb" },
  { text: "/orders?x=1", why: "has a query", want: 'expected "/", ":" or the end' },
  { text: "/orders#x", why: "has a fragment", want: 'expected "/", ":" or the end' },
  { text: "/ord ers", why: "has a space", want: 'expected "/", ":" or the end' },
  { text: "/pl\u00e4nts", why: "has a letter beyond ASCII", want: 'expected "/", ":" or the end' },
  { text: "/a%zz", why: "has a bad escape", want: 'expected "/", ":" or the end' },
  { text: "/a%ff", why: "has an escape that is not UTF-8", want: "percent escapes must be UTF-8 at character 2" },
  { text: "/a/./b", why: 'has the segment "."', want: 'no path can match the segment "." at character 4' },
  { text: "/a/%2e%2E", why: 'has a percent-encoded ".." segment', want: 'no path can match the segment ".."' },
])('parsePathTemplate() refuses "$text" (it $why)', ({ text, want }) => {
  expect(() => parsePathTemplate(text)).toThrow(`path template "${text}": ${want}`);
});

// The file has one template for each shape among 11,533 templates. Names and repeated segments do not count.
test("parsePathTemplate() parses the templates of the public Google APIs", () => {
  const file = join(import.meta.dirname, "googleapis-path-templates.txt");
  const templates = readFileSync(file, "utf8").trimEnd().split("\n");
  expect(templates.length).toBeGreaterThan(150);
  const changed = templates.filter((text) => {
    const template = parsePathTemplate(text);
    return !isDeepStrictEqual(parsePathTemplate(printPathTemplate(template)), template);
  });
  expect(changed).toEqual([]);
});

test.each([
  { text: "/{a}", want: false },
  { text: "/{a=*}", want: false },
  { text: "/{a=x}", want: false },
  { text: "/{a=**}", want: true },
  { text: "/{a=x/*}", want: true },
  { text: "/{a=*/*}", want: true },
])("isMultiSegment() returns $want for the template $text", ({ text, want }) => {
  const template = parsePathTemplate(text);
  expect(template.variables.map((variable) => isMultiSegment(template, variable))).toEqual([want]);
});

describe("printPathTemplate()", () => {
  const literal = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 8 })
    .filter((text) => text !== "." && text !== ".." && text.isWellFormed());
  const segment: fc.Arbitrary<TemplateSegment> = fc.oneof(
    literal.map((text) => ({ kind: "literal" as const, text })),
    fc.constant({ kind: "*" as const }),
  );
  const template: fc.Arbitrary<PathTemplate> = fc
    .record({
      parts: fc.array(fc.tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.boolean()), {
        minLength: 1,
        maxLength: 4,
      }),
      rest: fc.boolean(),
      verb: fc.option(literal, { nil: undefined }),
    })
    .map(({ parts, rest, verb }) => {
      const segments: TemplateSegment[] = [];
      const variables: PathTemplate["variables"][number][] = [];
      for (const [at, [group, isVariable]] of parts.entries()) {
        const start = segments.length;
        segments.push(...group);
        if (rest && at === parts.length - 1) segments.push({ kind: "**" });
        if (isVariable) variables.push({ fieldPath: [`f${at}`, "g"], start, end: segments.length });
      }
      return { segments, variables, verb };
    });

  test("prints a string that parses to the same template", () =>
    fc.assert(
      fc.property(template, (given) => {
        expect(parsePathTemplate(printPathTemplate(given))).toEqual(given);
      }),
      { numRuns: 500 },
    ));

  test.each(["/", "/orders/{id}:cancel", "/v1/{name=shelves/*/books/**}/x", "/a%2Fb/%2A", "/(default)/@me"])(
    "prints %s unchanged",
    (text) => expect(printPathTemplate(parsePathTemplate(text))).toBe(text),
  );
});
