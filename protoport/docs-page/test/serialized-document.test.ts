import { expect, test } from "vitest";
import { parse } from "yaml";
import { jsonPieces, parseWithDigits, serializeDocument, yamlPieces } from "../src/serialized-document.ts";

const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`ü${at}`, { type: "ü".repeat(11_000) }]));

test.each<{ readonly name: string; readonly document: object; readonly json?: object }>([
  {
    name: "paths and tags",
    document: { openapi: "3.1.0", paths: { "/a": { get: { tags: ["a"] } } }, tags: [{ name: "a" }] },
  },
  { name: "no members", document: {} },
  { name: "empty objects at each level", document: { paths: {}, components: { schemas: {} }, tags: [] } },
  { name: "strings, numbers, booleans and null", document: { a: "x", b: 1.5, c: true, d: null, e: { f: { g: "h" } } } },
  { name: "undefined members", document: { a: undefined, b: { c: undefined } }, json: { b: {} } },
  { name: "undefined items", document: { a: [undefined, 1] }, json: { a: [null, 1] } },
  { name: "over a million characters", document: { components: { schemas: members } } },
])("serializeDocument treats an object with $name like its JSON text", async ({ document, json = document }) => {
  const ofObject = await serializeDocument(document);
  const text = JSON.stringify(document);
  expect(Buffer.from(ofObject.json).toString()).toBe(text);
  const ofText = await serializeDocument(text);
  expect(Buffer.from(ofText.json).toString()).toBe(text);
  const yaml = Buffer.from(await ofObject.yaml()).toString();
  expect(Buffer.from(await ofText.yaml()).toString()).toBe(yaml);
  expect(parse(yaml)).toEqual(json);
});

// The event loop runs between two pieces.
test("a document's piece is at most one member of the third level", () => {
  const document = { paths: { "/a": { get: { tags: ["a"] }, put: {} } } };
  const get = '{"tags":["a"]}';
  expect([...jsonPieces(document)]).toEqual(['{"paths":', '{"/a":', '{"get":', get, ',"put":', "{}", "}", "}", "}"]);
  const yaml = ["paths:", '\n  "/a":', "\n    get:", "\n      tags:\n        - a", "\n    put:", " {}", "\n"];
  expect([...yamlPieces(document)]).toEqual(yaml);
});

test("serializeDocument returns the servers' origins for an object and for JSON text", async () => {
  const document = { servers: [{ url: "https://a.example/v1" }, { url: "https://a.example/v2" }, { url: "/v3" }] };
  for (const each of [document, JSON.stringify(document)]) {
    expect((await serializeDocument(each)).origins).toEqual(["https://a.example"]);
  }
});

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
