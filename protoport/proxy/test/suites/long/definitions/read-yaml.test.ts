import { expect, test } from "vitest";
import { readYaml } from "../../../../src/definitions/read-yaml.ts";

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

    and a paragraph
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

test("readYaml parses a Google service config", () => {
  const config = {
    type: "google.api.Service",
    config_version: 3,
    name: "library.example.com",
    http: {
      fully_decode_reserved_expansion: true,
      // oxfmt-ignore
      rules: [
        { selector: "library.v1.Library.GetBook", get: "/v1/{name=shelves/*/books/*}",
          additional_bindings: [{ get: "/v1/{name=books/*}:it's", response_body: "title" }, { post: "/v1/books:get",
            body: "*" }] },
        { selector: "library.v1.Library.PutBook", put: "/v1/{name=books/*}", body: "*" },
      ],
    },
    backend: { rules: [] },
    documentation: {
      summary: "Many words over lines\nand a paragraph",
      overview: "# Title\n  indented\n\nend",
      folded: "one line\n  but: not\n\nthese\n",
    },
  };
  expect([readYaml(serviceConfig), readYaml(serviceConfig.replaceAll("\n", "\r\n"))]).toEqual([config, config]);
  expect(readYaml(`\uFEFF---\n${serviceConfig}...\n# end\n`)).toEqual(config);
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
  ["a: 'b\n  c'\n", { a: "b c" }],
  ["1: a\nnull: b\n", { "1": "a", null: "b" }],
  ["%YAML 1.1\n---\n[yes, 0777]\n", ["yes", 777]],
  // `__proto__` is an ordinary member, not the prototype.
  ["__proto__: {a: 1}\n", Object.fromEntries([["__proto__", { a: 1 }]])],
])("readYaml accepts %j and returns the parsed value", (text, want) => {
  expect([readYaml(text), JSON.stringify(readYaml(text))]).toEqual([want, JSON.stringify(want)]);
});

test.each<[text: string, message: string]>([
  ["a: &b c\nd: *b", "line 2, column 4: *b is an alias, which is not supported; repeat the value or quote the string"],
  ["a: *b", "line 1, column 4: *b is an alias"],
  ["<<: *b", "line 1, column 5: *b is an alias"],
  ["a: !!binary aGk=", "line 1, column 4: "],
  ["a: !x b", "line 1, column 4: "],
  ["a: b\n---\nc: d", "line 2, column 1: the file must contain a single document"],
  ["a: 1\nb:\n  c: 1\n  c: 2", 'line 4, column 3: mapping keys must be unique, got "c" again'],
  ["a: {b: 1, b: 2}", 'line 1, column 11: mapping keys must be unique, got "b" again'],
  ['"a": 1\na: 2', 'line 2, column 1: mapping keys must be unique, got "a" again'],
  ["? [a]\n: b", "line 1, column 3: "],
  ["a:\n\tb: c", "line 2, column 1: "],
  ["a: b: c", "line 1, column 4: "],
  ["a: [b\nc: d", "line 2, column 1: "],
  ['a: "\\q"', "line 1, column 5: "],
])("readYaml rejects the text %j with its position", (text, message) => expect(() => readYaml(text)).toThrow(message));

const tooDeep = "sequences and mappings must be nested at most 100 levels deep";

test.each<[name: string, nest: (levels: number) => string, position: string]>([
  ["flow sequences", (levels) => "[".repeat(levels) + "]".repeat(levels), "line 1, column 101"],
  ["flow mappings", (levels) => `${"{a: ".repeat(levels)}1${"}".repeat(levels)}`, "line 1, column 401"],
  ["block sequences", (levels) => "- ".repeat(levels), "line 1, column 201"],
  [
    "block mappings",
    (levels) => Array.from({ length: levels }, (_, level) => `${" ".repeat(Math.min(level, 200))}a:\n`).join(""),
    "line 101, column 101",
  ],
])("readYaml accepts %s nested 100 levels deep, and rejects deeper nesting", (_, nest, position) => {
  expect(() => readYaml(nest(100))).not.toThrow();
  expect(() => readYaml(nest(101))).toThrow(`${position}: ${tooDeep}`);
  expect(() => readYaml(nest(50_000))).toThrow(`${position}: ${tooDeep}`);
});

test("readYaml rejects a mapping key nested more than 100 levels deep", () =>
  expect(() => readYaml(`? ${"[".repeat(50_000)}`)).toThrow(`line 1, column 102: ${tooDeep}`));
