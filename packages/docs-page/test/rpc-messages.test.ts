import { expect, test } from "vitest";
import { type Description, operationsOf } from "../src/files/description.ts";
import { messagesOf } from "../src/files/rpc.ts";
import { createOpenApi } from "../../gateway/src/index.ts";
import { readJson } from "../../protobuf/src/messages/json/index.ts";
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

test.each<Row>([
  {
    rpc: "list",
    name: "a field whose JSON name contains a dot",
    values: { "query page.size": "a" },
    want: { "page.size": "a" },
  },
  {
    rpc: "list",
    name: "nested fields whose JSON names contain dots",
    values: { "query in.ner.page.size": "a", "query in.ner.page": "b" },
    want: { "in.ner": { "page.size": "a", page: "b" } },
  },
  {
    rpc: "list",
    name: "a field whose JSON name is another field's path",
    values: { "query direct": "a", "query loop.text": "b" },
    want: { "loop.text": "a", loop: { text: "b" } },
  },
  {
    rpc: "list",
    name: "a field whose JSON name contains a space",
    values: { "query with space": "a" },
    want: { "with space": "a" },
  },
  {
    rpc: "list",
    name: "a field whose JSON name contains a percent sign",
    values: { "query per%2Ecent": "a" },
    want: { "per%2Ecent": "a" },
  },
  {
    rpc: "list",
    name: "a field whose JSON name is another field's name",
    values: { "query id": "a" },
    want: { id: "a" },
  },
  {
    rpc: "get",
    name: "fields from path variables",
    values: path,
    want: { id: "a", "in.ner": { "page.size": "b", one: "7" }, "{brace}": "c" },
  },
  {
    rpc: "get",
    name: "nested fields from the path and the query",
    values: { ...path, "query in.ner.page": "d" },
    want: { id: "a", "in.ner": { "page.size": "b", one: "7", page: "d" }, "{brace}": "c" },
  },
  {
    rpc: "get_2",
    name: "only the variable of a path with a wildcard",
    values: { "path segment_1": "a", "path uuid": "b" },
    want: { id: "b" },
  },
  {
    rpc: "postInner",
    name: "a nested field from the body",
    values: { "path id": "7" },
    bodies: ['{"page.size":"a"}'],
    want: { legacyId: "7", "in.ner": { "page.size": "a" } },
  },
  {
    rpc: "postInner_2",
    name: "nested fields from the path and the body",
    values: { "path id": "7", "path inner_two": "8" },
    bodies: ['{"page.size":"a"}'],
    want: { legacyId: "7", "in.ner": { one: "8", "page.size": "a" } },
  },
])("messagesOf sets $name in the gRPC message", ({ rpc, values, bodies = [], want }) => {
  const operation = operationsOf(description).find(({ id }) => id === rpc) ?? expect.unreachable();
  const input = { values: new Map(Object.entries(values)), accept: undefined, body: undefined, contentType: undefined };
  const [message = ""] = messagesOf(operation, input, bodies);
  expect(JSON.parse(message)).toEqual(want);
  // Parsing would refuse an unknown name.
  readJson(oddMethod("List").input, message, { unknownFields: "reject" });
});
