import type { DescService } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { type RouteTexts, serviceWithRoutes } from "../../../testing/src/gateway/reflected-upstream.ts";
import { createOpenApi, type OpenApiOptions, type OperationIds } from "../../src/openapi/entry.ts";
import type { OpenApiPathItem } from "../../src/openapi/open-api-document.ts";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { serviceIn, stringField } from "../../../testing/src/gateway/file-init.ts";

const info = { title: "Test", version: "1" };

// The operation ids of OpenAPI documents.

/** Returns the operation ids of services, given by name, in the document's order. */
function idsOf(services: Readonly<Record<string, RouteTexts>>, operationIds?: OperationIds): unknown[] {
  const described = Object.entries(services).map(([name, routes]) => serviceWithRoutes(name, routes));
  const { paths } = createOpenApi(described, { info, ...(operationIds && { operationIds }) });
  return Object.values(paths).flatMap((item) => Object.values(item).map((operation) => operation.operationId));
}

test.each<{ typeName: string; service: string; full: string }>([
  { typeName: "shop.v1.Shop", service: "v1_Shop_get", full: "shop_v1_Shop_get" },
  { typeName: "shop.v2beta1.Shop", service: "v2beta1_Shop_get", full: "shop_v2beta1_Shop_get" },
  { typeName: "v3.Shop", service: "v3_Shop_get", full: "v3_Shop_get" },
  { typeName: "shop.Shop", service: "Shop_get", full: "shop_Shop_get" },
  { typeName: "shop.v1.admin.Shop", service: "Shop_get", full: "shop_v1_admin_Shop_get" },
  { typeName: "shop.rev1.Shop", service: "Shop_get", full: "shop_rev1_Shop_get" },
])("an operation of $typeName has the id $service, or $full with its package", ({ typeName, service, full }) => {
  const services = { [typeName]: { Get: ["GET /shop"] } };
  expect([idsOf(services), idsOf(services, "full"), idsOf(services, "rpc")]).toEqual([[service], [full], ["get"]]);
});

test("a new version of a service renames no operation of the earlier version", () => {
  const v1 = { "shop.v1.Shop": { Get: ["GET /v1/shop", "GET /v1/shops/{id}"], List: ["GET /v1/shops"] } };
  const before = idsOf(v1);
  expect(before).toEqual(["v1_Shop_get", "v1_Shop_get_2", "v1_Shop_list"]);
  const v2 = { "shop.v2.Shop": { Get: ["GET /v2/shop"], Find: ["GET /v2/found"] } };
  expect(idsOf({ ...v2, ...v1 })).toEqual(["v2_Shop_get", "v2_Shop_find", ...before]);
});

test.each<[id: string, operationIds?: OperationIds]>([["v1_Admin_get"], ["v1_Admin_get", "service"], ["get", "rpc"]])(
  "two RPCs with the id %s are refused unless operationIds is full",
  (id, operationIds) => {
    const services = { "orders.v1.Admin": { Get: ["GET /orders"] }, "stock.v1.Admin": { Get: ["GET /stock"] } };
    expect(() => idsOf(services, operationIds)).toThrow(
      `the operation id ${id} names orders.v1.Admin.Get and stock.v1.Admin.Get; set operationIds: full`,
    );
    expect(idsOf(services, "full")).toEqual(["orders_v1_Admin_get", "stock_v1_Admin_get"]);
  },
);

test("an RPC without a route does not clash", () =>
  expect(idsOf({ "orders.v1.Admin": { Get: ["GET /orders"] }, "stock.v1.Admin": { Get: [] } })).toEqual([
    "v1_Admin_get",
  ]));

const sameId =
  "v1_Shop_get_2 names shop.v1.Shop.Get and shop.v1.Shop.Get_2; set operation_id in openapiv2_operation of one";

test.each<{ name: string; services: Readonly<Record<string, RouteTexts>>; operationIds?: OperationIds; want: string }>([
  {
    name: "a numbered id and an RPC's name",
    services: { "shop.v1.Shop": { Get: ["GET /one", "GET /two"], Get_2: ["GET /three"] } },
    want: sameId,
  },
  {
    name: "a numbered id of a rule for any method and an RPC's name",
    services: { "shop.v1.Shop": { Get: ["* /one"], Get_2: ["GET /two"] } },
    want: sameId,
  },
  {
    name: "two packages with underscores",
    services: { "a.b_c.Admin": { Get: ["GET /one"] }, "a_b.c.Admin": { Get: ["GET /two"] } },
    operationIds: "full",
    want: "a_b_c_Admin_get names a.b_c.Admin.Get and a_b.c.Admin.Get; rename one of them",
  },
  {
    name: "two packages with a version within",
    services: { "a.v1.admin.Shop": { Get: ["GET /one"] }, "a.v2.admin.Shop": { Get: ["GET /two"] } },
    want: "Shop_get names a.v1.admin.Shop.Get and a.v2.admin.Shop.Get; set operationIds: full",
  },
])("equal operation ids of $name are refused with a remedy", ({ services, operationIds, want }) => {
  expect(() => idsOf(services, operationIds)).toThrow(`the operation id ${want}`);
});

test("an operation that another RPC has taken renames no other operation", () => {
  const any = { "shop.v1.Any": { Call: ["* /shop"] } };
  const others = idsOf(any).filter((id) => id !== "v1_Any_call");
  expect(idsOf({ "shop.v1.Shop": { Get: ["GET /shop"] }, ...any })).toEqual(["v1_Shop_get", ...others]);
});

test("ids have the names of RPCs that JavaScript reserves", () => {
  const want = ["constructor", "toString"];
  expect(idsOf({ "shop.v1.Shop": { Constructor: ["GET /one"], ToString: ["GET /two"] } }, "rpc")).toEqual(want);
});

test("unknown names in operationIds are refused", () =>
  expect(() => idsOf({}, Object("short"))).toThrow("operationIds must be one of"));

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
    info,
    rest,
    onOmitted: ({ pattern }, reason) => omitted.push(`${pattern.httpMethod}: ${reason}`),
  });
  return { item: paths["/orders"] ?? {}, omitted };
}

test("OpenAPI 3.2 contains custom HTTP methods other than QUERY in additionalOperations", () => {
  const { item, omitted } = describeRules("3.2.0", ["QUERY", "PROPFIND", "query", "POST"], "*");
  expect(Object.keys(item)).toEqual(["query", "post", "additionalOperations"]);
  expect(Object.keys(item.additionalOperations ?? {})).toEqual(["PROPFIND", "query"]);
  expect([item.query, omitted]).toMatchObject([{ operationId: "deleteOrder", requestBody: { content: {} } }, []]);
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

const securitySchemes: OpenApiOptions["securitySchemes"] = {
  bearer: { type: "http", scheme: "bearer" },
  key: { type: "apiKey", in: "header", name: "x-key" },
};

/** Returns the requirements for the document and for each operation, or `undefined` if the document's apply. */
function requirementsOf(options: Partial<OpenApiOptions>): object {
  const given: OpenApiOptions = { info, operationIds: "rpc", ...options };
  const { security, paths } = createOpenApi([LibraryService], given);
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  return {
    document: security,
    operations: Object.fromEntries(
      operations.flatMap(({ operationId, security: own }) => (own ? [[operationId, own]] : [])),
    ),
  };
}

test.each<{ name: string; options: Partial<OpenApiOptions>; want: object }>(
  // oxfmt-ignore
  [
      { name: "is empty without securitySchemes", options: {}, want: { document: [], operations: {} } },
      { name: "requires all credentials by default", options: { securitySchemes },
        want: { document: [{ bearer: [], key: [] }], operations: {} } },
      { name: "contains the alternatives from the option security",
        options: { securitySchemes, security: [{ bearer: ["orders"] }, { key: [] }, {}] },
        want: { document: [{ bearer: ["orders"] }, { key: [] }, {}], operations: {} } },
      { name: "contains an empty array for a public RPC",
        options: { securitySchemes, security: [{ bearer: [] }], describeSecurity: ({ name }) =>
            name === "GetBook" ? [] : name === "CreateBook" ? [{ bearer: ["books:create"] }] : undefined },
        want: { document: [{ bearer: [] }], operations: { getBook: [], createBook: [{ bearer: ["books:create"] }] } } },
      { name: "is not repeated for an operation with the same requirement",
        options: { securitySchemes, security: [{ bearer: [] }], describeSecurity: () => [{ bearer: [] }] },
        want: { document: [{ bearer: [] }], operations: {} } },
    ],
)("the security of a document $name", ({ options, want }) => expect(requirementsOf(options)).toEqual(want));

test.each<{ name: string; options: Partial<OpenApiOptions>; message: string }>([
  {
    name: "for the document",
    options: { securitySchemes, security: [{ baerer: [] }] },
    message: 'security of createOpenApi: "baerer" is not a name of securitySchemes; did you mean "bearer"?',
  },
  {
    name: "for an RPC",
    options: { securitySchemes, describeSecurity: () => [{ oauth: [] }] },
    message: '"oauth" is not a name of securitySchemes; accepted are bearer, key',
  },
])("the security of a document is refused if the requirement $name names an unknown scheme", ({ options, message }) => {
  expect(() => requirementsOf(options)).toThrow(message);
});

/** Returns a service whose request is the first message. Each message has a text and the next message. */
function serviceOfCycle(names: readonly string[]): DescService {
  const messageType = names.map((name, at) => {
    const typeName = `.cycle.${names[at + 1] ?? names[0]}`;
    const next = { ...stringField("next", 2), type: FieldDescriptorProto_Type.MESSAGE, typeName };
    return { name, field: [stringField("text", 1), next] };
  });
  const method = [{ name: "Find", inputType: `.cycle.${names[0]}`, outputType: `.cycle.${names[0]}` }];
  const file = { name: "cycle.proto", package: "cycle", syntax: "proto3", messageType };
  return serviceIn({ ...file, service: [{ name: "Finder", method }] }, "cycle.Finder");
}

test.each([
  { names: ["A"], want: ["text"] },
  { names: ["A", "B"], want: ["text", "next.text"] },
  { names: ["A", "B", "C"], want: ["text", "next.text", "next.next.text"] },
])("query parameters list a cycle of $names.length message types only once", ({ names, want }) => {
  const { paths } = createOpenApi([serviceOfCycle(names)], {
    info,
    rest: { rules: [{ selector: "cycle.Finder.Find", pattern: { case: "get", value: "/find" } }] },
  });
  expect(paths["/find"]?.get?.parameters?.map((parameter) => parameter.name)).toEqual(want);
});
