import { expect, test } from "vitest";
import { needsCredential, type OperationObject, operationsOf } from "../src/files/description.ts";

test("operationsOf returns the operations of a path, without its other members", () => {
  const object: OperationObject = { responses: {} };
  const item = { get: object, query: object, summary: "Orders", additionalOperations: { PROPFIND: object } };
  const operations = operationsOf({ info: { title: "t", version: "1" }, paths: { "/orders": item } });
  expect(operations.map(({ id, method }) => [id, method])).toEqual([
    ["GET /orders", "GET"],
    ["QUERY /orders", "QUERY"],
    ["PROPFIND /orders", "PROPFIND"],
  ]);
});

const bearer = [{ bearer: [] }];

test.each<{ name: string; ofDocument?: object[]; ofOperation?: object[]; want: boolean }>([
  { name: "no credential is required", want: false },
  { name: "the document requires a credential", ofDocument: bearer, want: true },
  { name: "the operation is public", ofDocument: bearer, ofOperation: [], want: false },
  { name: "only the operation requires a credential", ofDocument: [], ofOperation: bearer, want: true },
  { name: "the operation allows an empty alternative", ofDocument: bearer, ofOperation: [...bearer, {}], want: false },
])("if $name, needsCredential returns $want for an operation", ({ ofDocument, ofOperation, want }) => {
  const description = { info: { title: "t", version: "1" }, paths: {}, ...(ofDocument && { security: ofDocument }) };
  expect(needsCredential(description, { responses: {}, ...(ofOperation && { security: ofOperation }) })).toBe(want);
});
