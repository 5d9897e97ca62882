import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { readYaml } from "../../../src/gateway/service-config/read-yaml.ts";
import { numRunsOf } from "../../support/test-seed.ts";

// What is read of YAML, beside the package `yaml`, and what is refused, with its place.

const serviceConfig = `# Copyright of nobody
type: google.api.Service
config_version: 3
name: "library.example.com"

http:
  fully_decode_reserved_expansion: true
  rules:
  # Lists of a key need not be indented.
  - selector: library.v1.Library.GetBook
    get: /v1/{name=shelves/*/books/*} # one book
    additional_bindings:
      - get: '/v1/{name=books/*}:it''s'
        response_body: "title"
      - { post: /v1/books:get, body: '*' }
  -
    selector: library.v1.Library.PutBook
    put: "/v1/\\u007bname=books\\/*}"
    body: "*"
backend:
    rules: [ ]
documentation:
  summary: Many words
    over lines

    and a paragraph: no
  overview: |-
    # Title
      indented

    end
  folded: >
    one
    line
      but: not

    these
`;

test("a config as Google's services have it is read", () => {
  expect(() => readYaml(serviceConfig)).toThrow("line 26, column 20: a key in a text that began on a line before");
  const text = serviceConfig.replace("paragraph: no", "paragraph");
  expect(readYaml(text)).toEqual(parse(text));
  expect(readYaml(text.replaceAll("\n", "\r\n"))).toEqual(parse(text));
  expect(readYaml(`\uFEFF---\n${text}...\n# end\n`)).toEqual(parse(text));
});

test.each<[text: string, want: unknown]>([
  ["", null],
  ["# nothing\n", null],
  ["---\n", null],
  ["a:\nb: ~\nc: null\n", { a: null, b: null, c: null }],
  [
    "[true, FALSE, yes, 1, -2.5, .5, 1e3, 0x1F, 0o17, 1_000]",
    [true, false, "yes", 1, -2.5, 0.5, 1000, 31, 15, "1_000"],
  ],
  ["- - a\n  - b\n-\n  - c\n- d:\n  - e\n  f: g\n", [["a", "b"], ["c"], { d: ["e"], f: "g" }]],
  ["- a:\n-\n- b\n", [{ a: null }, null, "b"]],
  ["a: http://b:80/#c d:e\n", { a: "http://b:80/#c d:e" }],
  ["a: b #c\nd: e#f\n", { a: "b", d: "e#f" }],
  ["[[b], \"#c\", {d: '#e'}]", [["b"], "#c", { d: "#e" }]],
  ["a: [b,\n  c, # d\n  {e: 'f', \"g\":h, 'i' : j}, ]\n", { a: ["b", "c", { e: "f", g: "h", i: "j" }] }],
  ["'a b': 1\n\"c\\td\": 2\n'3': 4\n", { "a b": 1, "c\td": 2, "3": 4 }],
  ['a: "\\x41\\u00e9\\U0001F331\\\\\\/\\"\\0\\_"\n', { a: 'Aé🌱\\/"\0\u00a0' }],
  ["a: |+\n  b\n\nc: >-\n  d\n  e\nf: |1\n  g\n", { a: "b\n\n", c: "d e", f: " g\n" }],
  ["a: |\nb: >\n\n", { a: "", b: "" }],
  ["a: b\n  - c\n  # d\n", { a: "b - c" }],
  ["a: -1\nb: -c\nd: ?e\n", { a: -1, b: "-c", d: "?e" }],
  // A member like any other, not the prototype.
  ["__proto__: {a: 1}\n", Object.fromEntries([["__proto__", { a: 1 }]])],
])("%j is read", (text, want) => {
  expect(readYaml(text)).toEqual(want);
  expect(JSON.stringify(readYaml(text))).toBe(JSON.stringify(want));
});

test("every escape in double quotes is read", () => {
  const text = String.raw`a: "\0\a\b\t\n\v\f\r\e\ \"\/\\\N\_\L\P\x41\u00e9\U0001F331"`;
  expect(readYaml(text)).toEqual(parse(text));
});

const deep = "[".repeat(101);

test.each<[text: string, says: string]>([
  ["a: *b", "line 1, column 4: *: a text that begins with it is written in quotes"],
  ["a: &b c", "line 1, column 4: &: a text that begins with it is written in quotes"],
  ["a: !!str b", "line 1, column 4: ! has no place here"],
  ["%YAML 1.2\n---\na: b", "line 1, column 1: % has no place here"],
  ["? a\n: b", "line 1, column 1: ? has no place here"],
  ["a: b\n---\nc: d", "line 2, column 1: a second document"],
  ["a: b\n...\nc: d", "line 3, column 1: c has no place here"],
  ["a: b\n...\n---\nc: d", "line 3, column 1: a second document"],
  ["--- a", "line 1, column 5: a has no place here"],
  ["a:\n\tb: c", "line 2, column 1: a tab, where YAML wants spaces"],
  ["a: b\tc", "line 1, column 5: a tab, where YAML wants spaces"],
  ["a: b\u0007", "line 1, column 5: a control character"],
  ["a: b\rc: d", "line 1, column 5: a control character"],
  ["a: b: c", "line 1, column 4: a second key on a line; a text with a colon and a space is written in quotes"],
  ["a: 1\nb:\n  c: 1\n  c: 2", "line 4, column 3: this key is here twice"],
  ["a: {b: 1, b: 2}", "line 1, column 11: this key is here twice"],
  ["1: a", "line 1, column 1: a key that is no text; it is one in quotes"],
  ["a: {null: b}", "line 1, column 5: a key that is no text; it is one in quotes"],
  ["a: 'b\n  c'", "line 1, column 4: quotes do not end on this line"],
  ['a: "b\\', "line 1, column 6: this escape is none of YAML"],
  ['a: "\\q"', "line 1, column 5: this escape is none of YAML"],
  ['a: "\\x4"', "line 1, column 5: this escape is none of YAML"],
  ['a: "\\U00110000"', "line 1, column 5: this escape is none of YAML"],
  ["a: 'b' c", "line 1, column 8: c has no place here"],
  ["a: - b", "line 1, column 4: - has no place here"],
  ["a: b\n c: d", "line 2, column 3: a key in a text that began on a line before"],
  ["a:\n  b: c\n d: e", "line 3, column 2: this line belongs to nothing above it"],
  ["a:\n  b: c\n    d: e", "line 3, column 6: a key in a text that began on a line before"],
  ["a: 'b'\n  c: d", "line 2, column 3: this line belongs to nothing above it"],
  ["- 'a'\n  - b", "line 2, column 3: this line belongs to nothing above it"],
  ["- a\nb: c", "line 2, column 1: this line belongs to nothing above it"],
  ["a: b\n- c", "line 2, column 1: - has no place here"],
  ["a: b\nc", "line 2, column 2: a key without a colon and a space"],
  ["a: x\n # c\n y", "line 3, column 2: this line belongs to nothing above it"],
  ["a: x # c\n y", "line 2, column 2: this line belongs to nothing above it"],
  ["a: [b\nc: d", "line 1, column 4: the bracket is not closed"],
  ["a:\n        b: [[c,\n        d]]", "line 2, column 13: the bracket is not closed"],
  ["a: [b, , c]", "line 1, column 8: , has no place here"],
  ["a: [b: c]", "line 1, column 6: : has no place here"],
  ["a: {b}", "line 1, column 6: a key without a value"],
  ["a: {b: }", "line 1, column 8: } has no place here"],
  ["a: {[b]: c}", "line 1, column 5: [ has no place here"],
  ["a: [b] c", "line 1, column 8: c has no place here"],
  ["a: [b,#c\n]", "line 1, column 7: # has no place here"],
  ["a: |x\n  b", "line 1, column 4: | has no place here"],
  ["a: |1-1\n  b", "line 1, column 4: | has no place here"],
  ["a: |\n    \n  b", "line 3, column 3: the lines before are indented further"],
  ["a: @b", "line 1, column 4: @ has no place here"],
  ["a: ,", "line 1, column 4: , has no place here"],
  [deep, "line 1, column 101: more than 100 lists and maps are nested"],
  ["- ".repeat(102), "line 1, column 203: more than 100 lists and maps are nested"],
])("%j is refused", (text, says) => {
  expect(() => readYaml(text)).toThrow(says);
});

test.each([
  {
    kind: "maps",
    nested: (count: number): string =>
      `${Array.from({ length: count }, (_, at) => `${"   ".repeat(at)}a:`).join("\n")} b\n`,
  },
  {
    kind: "lists",
    nested: (count: number): string => `${"- ".repeat(50)}${"[".repeat(count - 50)}${"]".repeat(count - 50)}`,
  },
])("100 $kind may be nested, however far they are indented", ({ nested }) => {
  expect(readYaml(nested(100))).toEqual(parse(nested(100)));
  expect(() => readYaml(nested(101))).toThrow("more than 100 lists and maps are nested");
});

// prettier-ignore
const pieces = [
  "a", "b: ", "c:", "- ", "-", "? ", "\n", "\n", "\n  ", "\n  ", "\n    ", "\n - ", "\n- ", " ", "#", " # x", "|", ">",
  "|-", ">+", ">2", "[", "]", "{", "}", ",", ", ", "'", '"', "'q'", '"d"', "''", "\\n", "\\", "*", "&", "!", "%", "@",
  "1", "2.5", "true", "~", "/v1/{x=a/*}:go", "---", "...", "\t", ":", "<<", "0x1f", "é", "[a, b]", "{a: b}", "key: v",
  "\nkey: v", "\n  key: v", "\n  - selector: a.B\n    get: /x",
];

test("what is read of any text is what the package yaml reads", () => {
  let read = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 14 }), (tokens) => {
      const text = `${tokens.join("")}\n`;
      let value: unknown;
      try {
        value = readYaml(text);
      } catch {
        return;
      }
      read++;
      expect(JSON.stringify(value)).toBe(JSON.stringify(parse(text, { strict: false })));
    }),
    { numRuns: numRunsOf(800) },
  );
  expect(read).toBeGreaterThan(40);
});

test("what the package yaml writes is read", () => {
  const name = fc.stringMatching(/^[a-z_]{1,8}$/).filter((key) => typeof parse(key) === "string");
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: fc.constantFrom("a", " ", ":", "#", "-", "'", '"', "*", "{", "\\", "\n", "é", "1", ",") }),
      fc.constantFrom<unknown>(true, null, 1, -2.5, "true", "1", "", "~"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(name, tie("value"), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (document) => {
      // Without aliases, and without texts in quotes over several lines.
      const text = stringify(document, {
        aliasDuplicateObjects: false,
        lineWidth: 0,
        doubleQuotedMinMultiLineLength: 1e6,
      });
      expect(readYaml(text)).toEqual(parse(text));
    }),
    { numRuns: numRunsOf(300) },
  );
});
