import { expect, test } from "vitest";
import { type OperationObject, operationsOf } from "../src/files/description.ts";

test("the page lists the operations of every method, and ignores other members of a path item", () => {
  const object: OperationObject = { responses: {} };
  const item = { get: object, query: object, summary: "Orders", additionalOperations: { PROPFIND: object } };
  const operations = operationsOf({ info: { title: "t", version: "1" }, paths: { "/orders": item } });
  expect(operations.map(({ id, method }) => [id, method])).toEqual([
    ["GET /orders", "GET"],
    ["QUERY /orders", "QUERY"],
    ["PROPFIND /orders", "PROPFIND"],
  ]);
});
