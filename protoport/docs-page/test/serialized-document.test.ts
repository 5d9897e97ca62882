import { expect, test } from "vitest";
import { parse } from "yaml";
import { jsonPieces, serializeDocument, yamlPieces } from "../src/serialized-document.ts";

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
