import { expect, test } from "vitest";
import { parse } from "yaml";
import { jsonPieces, parseWithDigits, serializeDocument, yamlPieces } from "../src/serialized-document.ts";

const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`ü${at}`, { type: "ü".repeat(11_000) }]));

test.each<[name: string, document: object, json?: object]>([
  ["paths and tags", { openapi: "3.1.0", paths: { "/a": { get: { tags: ["a"] } } }, tags: [{ name: "a" }] }],
  ["no members", {}],
  ["empty objects at each level", { paths: {}, components: { schemas: {} }, tags: [] }],
  ["strings, numbers, booleans and null", { a: "x", b: 1.5, c: true, d: null, e: { f: { g: "h" } } }],
  ["undefined members", { a: undefined, b: { c: undefined } }, { b: {} }],
  ["undefined items", { a: [undefined, 1] }, { a: [null, 1] }],
  ["over a million characters", { components: { schemas: members } }],
])("serializeDocument treats an object with %s like its JSON text", async (_name, document, json = document) => {
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
  for (const each of [document, JSON.stringify(document)])
    expect((await serializeDocument(each)).origins).toEqual(["https://a.example"]);
});

const writeYaml = (json: string): string => [...yamlPieces(parseWithDigits(json))].join("");
// JavaScript puts integer keys first.
const sorted = (text: string): string[] => text.split("\n").toSorted();

test.each(
  // oxfmt-ignore
  [
    ["nested objects", '{"a":{"b":{"c":1}}}', "a:\n  b:\n    c: 1\n"],
    ["an array", '{"a":["x",2]}', "a:\n  - x\n  - 2\n"],
    ["an array of objects", '{"a":[{"b":1,"c":{"d":2}},{"e":[]}]}', "a:\n  - b: 1\n    c:\n      d: 2\n  - e: []\n"],
    ["an array of arrays", "[[1,2],[{}]]", "- - 1\n  - 2\n- - {}\n"],
    ["empty values", '{"a":{},"b":[],"c":null}', "a: {}\nb: []\nc: null\n"],
    ["keys that need quotes at any level", '{"y":{"no":{"":{"on":{"a: b":1}}}}}',
      '"y":\n  "no":\n    "":\n      "on":\n        "a: b": 1\n'],
    ["a single value", '"x"', "x\n"],
    ["booleans", '{"a":true,"b":false}', "a: true\nb: false\n"],
    ["numbers with all their digits", '{"a":9223372036854775807,"b":-1.50,"c":1e400}',
      "a: 9223372036854775807\nb: -1.50\nc: 1e400\n"],
    ["strings that need quotes",
      '["true","FALSE","yes","No","null","on","OFF","y","n","1","3.1.0","2026-11-22","-","~","","a: b","a #b","#a","*a","&a","!a","@a","a:","x ","a  b","a -b","{a}"]',
      [..."true FALSE yes No null on OFF y n 1 3.1.0 2026-11-22 - ~".split(" "), "", "a: b", "a #b", "#a", "*a", "&a",
        "!a", "@a", "a:", "x ", "a  b", "a -b", "{a}"].map((text) => `- ${JSON.stringify(text)}\n`).join("")],
    ["strings that need no quotes", '["ny","a b $c","_a.b-c/d","$x"]', "- ny\n- a b $c\n- _a.b-c/d\n- $x\n"],
    ["a string with line breaks", String.raw`["a\nb\u0007\"\\"]`, String.raw`- "a\nb\u0007\"\\"` + "\n"],
    ["keys that need quotes",
      '{"$ref":"#/components/schemas/A","/v1/{name}":1,"200":2,"application/json":3,"x-rpc":4,"":5,"on":6}',
      '$ref: "#/components/schemas/A"\n"/v1/{name}": 1\n"200": 2\napplication/json: 3\nx-rpc: 4\n"": 5\n"on": 6\n'],
  ],
)("yamlPieces converts %s to YAML", (_name, json, yaml) => expect(sorted(writeYaml(json))).toEqual(sorted(yaml)));
