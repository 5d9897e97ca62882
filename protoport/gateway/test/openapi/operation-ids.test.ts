import { expect, test } from "vitest";
import { type RouteTexts, serviceWithRoutes } from "../../../testing/src/gateway/reflected-upstream.ts";
import { createOpenApi, type OperationIds } from "../../src/openapi/entry.ts";

// The operation ids of OpenAPI documents.

/** Returns the operation ids of services, given by name, in the document's order. */
function idsOf(services: Readonly<Record<string, RouteTexts>>, operationIds?: OperationIds): unknown[] {
  const described = Object.entries(services).map(([name, routes]) => serviceWithRoutes(name, routes));
  const { paths } = createOpenApi(described, {
    info: { title: "t", version: "1" },
    ...(operationIds && { operationIds }),
  });
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

test.each<{ operationIds?: OperationIds; id: string }>([
  { id: "v1_Admin_get" },
  { operationIds: "service", id: "v1_Admin_get" },
  { operationIds: "rpc", id: "get" },
])("two RPCs with the id $id are refused unless operationIds is full", ({ operationIds, id }) => {
  const services = { "orders.v1.Admin": { Get: ["GET /orders"] }, "stock.v1.Admin": { Get: ["GET /stock"] } };
  expect(() => idsOf(services, operationIds)).toThrow(
    `the operation id ${id} names orders.v1.Admin.Get and stock.v1.Admin.Get; set operationIds: full`,
  );
  expect(idsOf(services, "full")).toEqual(["orders_v1_Admin_get", "stock_v1_Admin_get"]);
});

test("an RPC without a route does not clash", () => {
  expect(idsOf({ "orders.v1.Admin": { Get: ["GET /orders"] }, "stock.v1.Admin": { Get: [] } })).toEqual([
    "v1_Admin_get",
  ]);
});

test.each<{ name: string; services: Readonly<Record<string, RouteTexts>>; operationIds?: OperationIds; want: string }>([
  {
    name: "a numbered id and an RPC's name",
    services: { "shop.v1.Shop": { Get: ["GET /one", "GET /two"], Get_2: ["GET /three"] } },
    want: "v1_Shop_get_2 names shop.v1.Shop.Get and shop.v1.Shop.Get_2; set operation_id in openapiv2_operation of one",
  },
  {
    name: "a numbered id of a rule for any method and an RPC's name",
    services: { "shop.v1.Shop": { Get: ["* /one"], Get_2: ["GET /two"] } },
    want: "v1_Shop_get_2 names shop.v1.Shop.Get and shop.v1.Shop.Get_2; set operation_id in openapiv2_operation of one",
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

test("unknown names in operationIds are refused", () => {
  expect(() => idsOf({}, Object("short"))).toThrow("operationIds must be one of");
});
