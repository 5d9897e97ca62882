import { expect, test } from "vitest";
import { type Description, type OperationObject, operationsOf, type Parameter } from "../src/files/description.ts";
import { messagesOf } from "../src/files/rpc.ts";
import { createOpenApi } from "../../gateway/src/openapi/index.ts";
import { readJson } from "../../gateway/src/protobuf/messages/json/index.ts";
import { oddMethod, oddNames, oddRules } from "../../testing/src/gateway/odd-names.ts";

// Tests the messages that the page writes for grpcurl and buf, with fields whose JSON names have dots, braces and
// spaces.

const document = createOpenApi([oddNames], { info: { title: "t", version: "1" }, rest: { rules: oddRules } });
const description: Description = JSON.parse(JSON.stringify(document));

interface Row {
  readonly rpc: string;
  readonly name: string;
  readonly values: Readonly<Record<string, string>>;
  readonly bodies?: readonly string[];
  readonly want: object;
}

const path = { "path uuid": "a", "path inner_f0": "b", "path inner_two": "7", "path f10": "c" };

test.each<Row>(
  // oxfmt-ignore
  [
    { rpc: "list", name: "a field whose JSON name contains a dot", values: { "query page.size": "a" },
      want: { "page.size": "a" } },
    { rpc: "list", name: "nested fields whose JSON names contain dots",
      values: { "query in.ner.page.size": "a", "query in.ner.page": "b" },
      want: { "in.ner": { "page.size": "a", page: "b" } } },
    { rpc: "list", name: "a field whose JSON name is another field's path",
      values: { "query direct": "a", "query loop.text": "b" }, want: { "loop.text": "a", loop: { text: "b" } } },
    { rpc: "list", name: "a field whose JSON name contains a space", values: { "query with space": "a" },
      want: { "with space": "a" } },
    { rpc: "list", name: "a field whose JSON name contains a percent sign", values: { "query per%2Ecent": "a" },
      want: { "per%2Ecent": "a" } },
    { rpc: "list", name: "a field whose JSON name is another field's name", values: { "query id": "a" },
      want: { id: "a" } },
    { rpc: "get", name: "fields from path variables", values: path,
      want: { id: "a", "in.ner": { "page.size": "b", one: "7" }, "{brace}": "c" } },
    { rpc: "get", name: "nested fields from the path and the query", values: { ...path, "query in.ner.page": "d" },
      want: { id: "a", "in.ner": { "page.size": "b", one: "7", page: "d" }, "{brace}": "c" } },
    { rpc: "get_2", name: "only the variable of a path with a wildcard",
      values: { "path segment_1": "a", "path uuid": "b" }, want: { id: "b" } },
    { rpc: "postInner", name: "a nested field from the body", values: { "path id": "7" }, bodies: ['{"page.size":"a"}'],
      want: { legacyId: "7", "in.ner": { "page.size": "a" } } },
    { rpc: "postInner_2", name: "nested fields from the path and the body",
      values: { "path id": "7", "path inner_two": "8" }, bodies: ['{"page.size":"a"}'],
      want: { legacyId: "7", "in.ner": { one: "8", "page.size": "a" } } },
  ],
)("messagesOf sets $name in the gRPC message", ({ rpc, values, bodies = [], want }) => {
  const operation = operationsOf(description).find(({ id }) => id.endsWith(`_${rpc}`)) ?? expect.unreachable();
  const input = { values: new Map(Object.entries(values)), accept: undefined, body: undefined, contentType: undefined };
  const [message = ""] = messagesOf(operation, input, bodies);
  expect(JSON.parse(message)).toEqual(want);
  // Parsing would refuse an unknown name.
  readJson(oddMethod("List").input, message, { unknownFields: "reject" });
});

const shelf: Parameter = { name: "shelf", in: "path", schema: { type: "string" } };
const room: Parameter = { name: "room", in: "path", schema: { type: "integer", format: "int32" } };
const queryParameters: readonly Parameter[] = [
  { name: "isOpen", in: "query", schema: { type: "boolean" } },
  { name: "floor", in: "query", schema: { type: "integer", format: "int32" } },
  { name: "id", in: "query", schema: { type: "integer", format: "int64" } },
  { name: "count", in: "query", schema: { type: "integer", format: "uint32" } },
  { name: "size", in: "query", schema: { type: "integer", format: "uint64" } },
  { name: "years", in: "query", schema: { type: "array", items: { type: "integer", format: "int32" } } },
];

interface FormRow {
  readonly name: string;
  readonly template?: string;
  readonly body?: string;
  readonly values: Readonly<Record<string, string>>;
  readonly bodies?: readonly string[];
  readonly want: readonly string[];
}

test.each<FormRow>(
  // oxfmt-ignore
  [
    { name: "booleans and 32-bit integers without quotes, and 64-bit integers with quotes",
      values: { "query isOpen": "false", "query floor": "-7", "query id": "9007199254740993", "query count": "0",
        "query size": "1" }, want: ['{"isOpen":false,"floor":-7,"id":"9007199254740993","count":0,"size":"1"}'] },
    { name: "a list with one value per line", values: { "query years": "1999\n2026" },
      want: ['{"years":[1999,2026]}'] },
    { name: "a 32-bit integer from the path without quotes", template: "/v1/{shelf}/{room}",
      values: { "path shelf": "7", "path room": "7" }, want: ['{"shelf":"7","room":7}'] },
    { name: "an omitted path parameter as no field", values: {}, want: ["{}"] },
    { name: "a path variable with literal segments as one string", template: "/v1/{name=shelves/*}",
      values: { "path shelf": "7" }, want: ['{"name":"shelves/7"}'] },
    { name: "each line of a stream as a message with the path's fields", body: "*", values: { "path shelf": "a" },
      bodies: ['{"b":9007199254740993}', "{}", ' { "b": 1 } ', "{ }"],
      want: ['{"shelf":"a","b":9007199254740993}', '{"shelf":"a"}', '{"shelf":"a","b": 1}', '{"shelf":"a"}'] },
    { name: "no body if the RPC has none", values: { "path shelf": "a" }, bodies: ['{"b":1}'],
      want: ['{"shelf":"a"}'] },
    { name: "only the path's fields if the body is empty", body: "*", values: { "path shelf": "a" },
      want: ['{"shelf":"a"}'] },
  ],
)("messagesOf writes $name", ({ template = "/v1/{shelf}", body = "", values, bodies = [], want }) => {
  const parameters = [shelf, room, ...queryParameters];
  const rpc = { procedure: "/a.A/Get", path: template, body };
  const object: OperationObject = { responses: {}, parameters, "x-rpc": rpc };
  const input = { values: new Map(Object.entries(values)), accept: undefined, body: undefined, contentType: undefined };
  expect(messagesOf({ id: "get", path: "/v1/{shelf}", method: "GET", object }, input, bodies)).toEqual(want);
});
