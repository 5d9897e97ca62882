import { expect, test } from "vitest";
import {
  accessOf,
  groupsOf,
  isBytes,
  isLines,
  mainMediaOf,
  needsCredential,
  type OperationObject,
  operationsOf,
  resolveSchema,
  responseOf,
  titleOf,
} from "../src/files/description.ts";

test("operationsOf returns the operations of a path, without its other members", () => {
  const object: OperationObject = { responses: {} };
  const item = { get: object, query: object, summary: "Orders", additionalOperations: { PROPFIND: object } };
  const operations = operationsOf({ info: { title: "t", version: "1" }, paths: { "/orders": item } });
  const found = operations.map(({ id, method }) => `${id}, ${method}`);
  expect(found).toEqual(["GET /orders, GET", "QUERY /orders, QUERY", "PROPFIND /orders, PROPFIND"]);
});

test("operationsOf lists an operation for each method, named by its operationId", () => {
  const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];
  const item = Object.fromEntries(methods.map((method) => [method, { responses: {}, operationId: `${method}Order` }]));
  const operations = operationsOf({ info: { title: "t", version: "1" }, paths: { "/orders": item } });
  expect(operations.map(({ id, method }) => [id, method])).toEqual(
    methods.map((method) => [`${method}Order`, method.toUpperCase()]),
  );
});

const bearer = [{ bearer: [] }];
type Requirements = NonNullable<OperationObject["security"]>;

test.each<{ name: string; ofDocument?: Requirements; ofOperation?: Requirements; want: boolean }>([
  { name: "no credential is required", want: false },
  { name: "the document requires a credential", ofDocument: bearer, want: true },
  { name: "the operation is public", ofDocument: bearer, ofOperation: [], want: false },
  { name: "only the operation requires a credential", ofDocument: [], ofOperation: bearer, want: true },
  { name: "the operation allows an empty alternative", ofDocument: bearer, ofOperation: [...bearer, {}], want: false },
])("if $name, needsCredential returns $want for an operation", ({ ofDocument, ofOperation, want }) => {
  const description = { info: { title: "t", version: "1" }, paths: {}, ...(ofDocument && { security: ofDocument }) };
  expect(needsCredential(description, { responses: {}, ...(ofOperation && { security: ofOperation }) })).toBe(want);
});

test.each<{ name: string; ofDocument?: Requirements; ofOperation?: Requirements; want: readonly string[] | undefined }>(
  [
    { name: "no credential is required", want: undefined },
    { name: "the operation needs the document's credential", ofDocument: bearer, want: undefined },
    { name: "the operation is public", ofDocument: bearer, ofOperation: [], want: ["No credential", ""] },
    { name: "the operation allows an empty alternative", ofOperation: [...bearer, {}], want: ["No credential", ""] },
    { name: "the operation has scopes", ofOperation: [{ bearer: ["a", "b"], key: [] }], want: ["Scopes ", "a b"] },
    { name: "the document has scopes", ofDocument: [{ bearer: ["a"] }], want: ["Scopes ", "a"] },
    {
      name: "alternatives have different scopes",
      ofOperation: [{ one: ["a"] }, { two: ["a"] }, { three: ["b"] }, { key: [] }],
      want: ["Scopes ", "a or b"],
    },
  ],
)("if $name, accessOf returns $want for an operation", ({ ofDocument, ofOperation, want }) => {
  const description = { info: { title: "t", version: "1" }, paths: {}, ...(ofDocument && { security: ofDocument }) };
  expect(accessOf(description, { responses: {}, ...(ofOperation && { security: ofOperation }) })).toEqual(want);
});

const operationWith = (...tags: string[]): { get: OperationObject } => ({ get: { responses: {}, tags } });

test("groupsOf returns the tags with operations in their order, other operations last", () => {
  const paths = {
    "/1": operationWith(),
    "/2": operationWith("b", "a"),
    "/3": operationWith("a"),
    "/4": operationWith("b"),
  };
  const tags = [{ name: "a", description: "About a." }, { name: "empty" }, { name: "b" }];
  const groups = groupsOf({ info: { title: "t", version: "1" }, tags, paths });
  const found = groups.map(({ name, operations }) => [name, ...operations.map(({ path }) => path)].join(" "));
  expect(found).toEqual(["a /3", "b /2 /4", "Operations /1"]);
  expect(groups[0]?.description).toBe("About a.");
});

test("groupsOf returns undeclared tags after declared ones, before operations without a tag", () => {
  const paths = { "/1": operationWith(), "/2": operationWith("b"), "/3": operationWith("a"), "/4": operationWith("b") };
  const groups = groupsOf({ info: { title: "t", version: "1" }, tags: [{ name: "a" }], paths });
  const found = groups.map(({ name, operations }) => [name, ...operations.map(({ path }) => path)].join(" "));
  expect(found).toEqual(["a /3", "b /2 /4", "Operations /1"]);
});

test.each([
  { status: 404, want: "404" },
  { status: 409, want: "4XX" },
  { status: 500, want: "default" },
])("responseOf returns the response $want for the status $status", ({ status, want }) => {
  const responses = Object.fromEntries(["default", "4XX", "404"].map((name) => [name, { description: name }]));
  const paths = { "/a": { get: { responses } } };
  const [operation = expect.unreachable()] = operationsOf({ info: { title: "t", version: "1" }, paths });
  expect(responseOf(operation, status)?.description).toBe(want);
});

test.each([
  { types: ["text/event-stream", "application/json", "application/x-ndjson"], want: "application/x-ndjson" },
  { types: ["text/event-stream", "application/json", "application/jsonl"], want: "application/jsonl" },
  { types: ["text/plain", "application/json"], want: "application/json" },
  { types: ["text/plain", "text/html"], want: "text/plain" },
])("mainMediaOf selects $want from $types", ({ types, want }) => {
  expect(mainMediaOf(Object.fromEntries(types.map((type) => [type, {}])))?.type).toBe(want);
});

test.each([
  { type: "application/x-ndjson", want: true },
  { type: "application/jsonl; charset=utf-8", want: true },
  { type: "application/jsonlines", want: false },
  { type: "application/json", want: false },
  { type: "text/application/jsonl", want: false },
])("isLines returns $want for the type $type of a body", ({ type, want }) => expect(isLines(type)).toBe(want));

test.each([
  { schema: { type: "string", format: "binary" }, want: true },
  { schema: { type: "string", format: "date" }, want: false },
  { schema: undefined, want: false },
])("isBytes returns $want for the schema $schema of a body", ({ schema, want }) => {
  expect(isBytes({ ...(schema && { schema }) })).toBe(want);
});

test.each([
  { summary: "Gets an order.", want: "Gets an order." },
  { summary: undefined, want: "getOrder" },
])("titleOf returns $want if $summary is the summary", ({ summary, want }) => {
  const object = { responses: {}, ...(summary !== undefined && { summary }) };
  expect(titleOf({ id: "getOrder", path: "/orders", method: "GET", object })).toBe(want);
});

test("resolveSchema prefers a field's description over its schema's", () => {
  const schemas = { Shelf: { type: "object", description: "A shelf." } };
  const description = { info: { title: "t", version: "1" }, paths: {}, components: { schemas } };
  const field = { $ref: "#/components/schemas/Shelf", description: "The top shelf." };
  expect(resolveSchema(description, field)).toMatchObject({ type: "object", description: "The top shelf." });
});
