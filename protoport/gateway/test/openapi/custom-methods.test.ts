import { expect, test } from "vitest";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/create-open-api.ts";
import type { OpenApiPathItem } from "../../src/openapi/open-api-document.ts";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";

// Bindings with the custom kinds in HTTP rules.

const selector = `${OrderService.typeName}.DeleteOrder`;

type PathDescription = { readonly item: OpenApiPathItem; readonly omitted: readonly string[] };

/** Describes an RPC with these rules at one path. */
function describeRules(openapi: "3.1.0" | "3.2.0", kinds: readonly string[], body = ""): PathDescription {
  const omitted: string[] = [];
  const [first, ...others] = kinds.map((kind) => ({
    pattern: { case: "custom" as const, value: { kind, path: "/orders" } },
    body,
  }));
  const rest: OpenApiOptions["rest"] = { rules: [{ ...first, selector, additionalBindings: others }] };
  const { paths } = createOpenApi([OrderService], {
    openapi,
    operationIds: "rpc",
    info: { title: "Test", version: "1" },
    rest,
    onOmitted: ({ pattern }, reason) => omitted.push(`${pattern.httpMethod}: ${reason}`),
  });
  return { item: paths["/orders"] ?? {}, omitted };
}

test("OpenAPI 3.2 contains custom HTTP methods other than QUERY in additionalOperations", () => {
  const { item, omitted } = describeRules("3.2.0", ["QUERY", "PROPFIND", "query", "POST"], "*");
  expect(Object.keys(item)).toEqual(["query", "post", "additionalOperations"]);
  expect(Object.keys(item.additionalOperations ?? {})).toEqual(["PROPFIND", "query"]);
  expect(item.query).toMatchObject({ operationId: "deleteOrder", requestBody: { content: {} } });
  expect(omitted).toEqual([]);
});

test.each([
  ["without a body", "", ["put", "post", "delete", "options", "head", "patch", "trace", "query", "get"]],
  ["with a body", "*", ["put", "post", "delete", "options", "patch", "query", "get"]],
])("OpenAPI 3.2 describes a rule for any method %s under each possible method", (_name, body, want) => {
  const { item, omitted } = describeRules("3.2.0", ["*", "GET"], body);
  expect(Object.keys(item).toSorted()).toEqual(want.toSorted());
  // The binding for GET alone comes first.
  expect([item.get?.operationId, omitted]).toEqual(["deleteOrder", []]);
});

test("OpenAPI 3.1 omits custom HTTP methods and passes them to onOmitted", () => {
  const { item, omitted } = describeRules("3.1.0", ["QUERY", "*"]);
  expect(Object.keys(item)).toEqual(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);
  expect(omitted).toEqual(["QUERY: OpenAPI 3.1 cannot describe this HTTP method; 3.2 can"]);
});
