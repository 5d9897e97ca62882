import { expect, test } from "vitest";
import { parseWithDigits, yamlPieces } from "../src/serialized-document.ts";

function writeYaml(json: string): string {
  return [...yamlPieces(parseWithDigits(json))].join("");
}

// JavaScript puts integer keys first.
function sorted(text: string): string[] {
  return text.split("\n").toSorted();
}

test.each([
  { name: "nested objects", json: '{"a":{"b":{"c":1}}}', yaml: "a:\n  b:\n    c: 1\n" },
  { name: "an array", json: '{"a":["x",2]}', yaml: "a:\n  - x\n  - 2\n" },
  {
    name: "an array of objects",
    json: '{"a":[{"b":1,"c":{"d":2}},{"e":[]}]}',
    yaml: "a:\n  - b: 1\n    c:\n      d: 2\n  - e: []\n",
  },
  { name: "an array of arrays", json: "[[1,2],[{}]]", yaml: "- - 1\n  - 2\n- - {}\n" },
  { name: "empty values", json: '{"a":{},"b":[],"c":null}', yaml: "a: {}\nb: []\nc: null\n" },
  {
    name: "keys that need quotes at any level",
    json: '{"y":{"no":{"":{"on":{"a: b":1}}}}}',
    yaml: '"y":\n  "no":\n    "":\n      "on":\n        "a: b": 1\n',
  },
  { name: "a single value", json: '"x"', yaml: "x\n" },
  { name: "booleans", json: '{"a":true,"b":false}', yaml: "a: true\nb: false\n" },
  {
    name: "numbers with all their digits",
    json: '{"a":9223372036854775807,"b":-1.50,"c":1e400}',
    yaml: "a: 9223372036854775807\nb: -1.50\nc: 1e400\n",
  },
  {
    name: "strings that need quotes",
    json: '["true","FALSE","yes","No","null","on","OFF","y","n","1","3.1.0","2026-11-22","-","~","","a: b","a #b","#a","*a","&a","!a","@a","a:","x ","a  b","a -b","{a}"]',
    yaml: [
      ..."true FALSE yes No null on OFF y n 1 3.1.0 2026-11-22 - ~".split(" "),
      "",
      "a: b",
      "a #b",
      "#a",
      "*a",
      "&a",
      "!a",
      "@a",
      "a:",
      "x ",
      "a  b",
      "a -b",
      "{a}",
    ]
      .map((text) => `- ${JSON.stringify(text)}\n`)
      .join(""),
  },
  {
    name: "strings that need no quotes",
    json: '["ny","a b $c","_a.b-c/d","$x"]',
    yaml: "- ny\n- a b $c\n- _a.b-c/d\n- $x\n",
  },
  {
    name: "a string with line breaks",
    json: String.raw`["a\nb\u0007\"\\"]`,
    yaml: String.raw`- "a\nb\u0007\"\\"` + "\n",
  },
  {
    name: "keys that need quotes",
    json: '{"$ref":"#/components/schemas/A","/v1/{name}":1,"200":2,"application/json":3,"x-rpc":4,"":5,"on":6}',
    yaml: '$ref: "#/components/schemas/A"\n"/v1/{name}": 1\n"200": 2\napplication/json: 3\nx-rpc: 4\n"": 5\n"on": 6\n',
  },
])("yamlPieces converts $name to YAML", ({ json, yaml }) => {
  expect(sorted(writeYaml(json))).toEqual(sorted(yaml));
});
