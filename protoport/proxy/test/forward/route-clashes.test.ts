import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { runSteps } from "../../../gateway/src/http/index.ts";
import { parsePathTemplate, routesOverlap } from "../../../gateway/src/protocols/rest/rules/index.ts";
import { selectorOf } from "../../../gateway/src/rest.ts";
import { LibraryService, serviceWithRoutes, Shelves } from "@protoport/testing/proxy";
import { findRouteClashes, type RouteClaims, type RouteContext, RouteIndex } from "../../src/forward/route-clashes.ts";
import { ServiceOwners } from "../../src/upstreams/index.ts";

type Found = readonly { readonly clashes: readonly string[]; readonly held: readonly string[] }[];
const none = { clashes: [], held: [] };
const nothing = { localMethods: [], reservedPaths: new Set<string>(), rules: [], omit: [] };

/** Finds the clashes of two upstreams, `shelves` and `library`. */
function find(context: Partial<RouteContext> = {}, shelves: DescService = Shelves): Found {
  const upstream = { isReflected: false, waitsFor: undefined };
  const upstreams = [
    { ...upstream, name: "shelves", methods: shelves.methods },
    { ...upstream, name: "library", methods: LibraryService.methods },
  ];
  const owners = new ServiceOwners([{ descriptors: undefined }, { descriptors: undefined }]);
  return runSteps(findRouteClashes(upstreams, { ...nothing, owners, ...context }));
}

test("routes that do not overlap are all served", () => expect(find()).toEqual([none, none]));

test("a route at an endpoint's path belongs to this server", () => {
  const [shelves, library] = find({ reservedPaths: new Set(["/v1/books"]) });
  expect(shelves).toEqual(none);
  expect(library?.clashes).toEqual([
    "route GET /v1/books of library.v1.LibraryService.ListBooks belongs to this server",
    "route POST /v1/books of library.v1.LibraryService.CreateBook belongs to this server",
  ]);
  expect(library?.held).toEqual(LibraryService.methods.map(selectorOf));
});

test("a route at the path of a configured rule belongs to the rule", () => {
  const rule = { selector: "a.B.C", pattern: { case: "post", value: "/v1/shelves:get" } } as const;
  const [shelves, library] = find({ rules: [rule] });
  expect(shelves?.clashes).toEqual([
    "route POST /v1/shelves:get of kitchensink.v1.Shelves.GetShelf belongs to a rule of the configuration",
  ]);
  expect(library).toEqual(none);
});

/** Returns the clashes of a route with the RPC paths of an upstream that has service patterns. */
function clashesOf(route: string): readonly string[] {
  const owners = new ServiceOwners([{ descriptors: undefined }, { descriptors: undefined, services: ["library.*"] }]);
  return find({ owners }, serviceWithRoutes("shelves.v1.Shelves", { Find: [route] })).flatMap(({ clashes }) => clashes);
}

test.each(["*", "GET", "POST"])("a route %s /{id}/{sub} clashes with another upstream's RPC paths", (httpMethod) => {
  const route = `${httpMethod} /{id}/{sub}`;
  expect(clashesOf(route)).toEqual([`route ${route} of shelves.v1.Shelves.Find belongs to library`]);
});

test("a route PUT /{id}/{sub} is served despite another upstream's RPC paths", () =>
  expect(clashesOf("PUT /{id}/{sub}")).toEqual([]));

const [orders, stock, shared] = [
  serviceWithRoutes("shop.v1.Orders", { Get: ["GET /v1/orders/{id}", "GET /v1/orders"], Put: ["PUT /v1/orders"] }),
  serviceWithRoutes("stock.v1.Stock", { Count: ["GET /v1/stock/{id}"], Get: ["GET /v1/orders"], Later: [] }),
  serviceWithRoutes("a.v1.Shared", {
    Get: ["GET /v1/orders/7", "GET /v1/{id=**}", "GET /v1/{"],
    Put: ["PUT /v1/orders"],
  }),
];

test.each<
  [
    name: string,
    services: readonly DescService[],
    clashes: readonly (readonly string[])[],
    held: readonly (readonly string[])[],
    context?: Partial<RouteContext> | undefined,
    states?: readonly Partial<RouteClaims>[] | undefined,
    patterns?: readonly (readonly string[])[],
  ]
>(
  // oxfmt-ignore
  [
    ["belong to the first of three upstreams", [orders, stock, shared],
      [[], ["route GET /v1/orders of stock.v1.Stock.Get belongs to 0"],
        ["route GET /v1/orders/7 of a.v1.Shared.Get belongs to 0",
          "route GET /v1/{id=**} of a.v1.Shared.Get belongs to 0",
          "route PUT /v1/orders of a.v1.Shared.Put belongs to 0"]],
      [[], ["Stock.Count", "Stock.Get"], ["Shared.Get", "Shared.Put"]]],
    ["belong to the operator's descriptors before those of a reflected upstream", [shared, orders],
      [expect.objectContaining({ length: 3 }), []], [["Shared.Get", "Shared.Put"], []], undefined,
      [{ isReflected: true }, {}]],
    ["of an upstream with a clash do not clash with those of a later one",
      [orders, stock, serviceWithRoutes("a.v1.A", { Count: ["GET /v1/stock/{id}"] })],
      [[], ["route GET /v1/orders of stock.v1.Stock.Get belongs to 0"], []], [[], ["Stock.Count", "Stock.Get"], []]],
    ["may overlap within an upstream", [shared], [[]], [[]]],
    ["belong to this server's annotations first", [stock],
      [["route GET /v1/stock/{id} of stock.v1.Stock.Count belongs to this server",
        "route GET /v1/orders of stock.v1.Stock.Get belongs to this server"]], [["Stock.Count", "Stock.Get"]],
      { localMethods: [...orders.methods, ...shared.methods] }],
    ["belong to the rule of a local service", [stock],
      [["route GET /v1/orders of stock.v1.Stock.Get belongs to this server"]], [["Stock.Count", "Stock.Get"]],
      { localMethods: serviceWithRoutes("a.v1.Local", { Get: [] }).methods,
        rules: [{ selector: "a.v1.Local.Get", pattern: { case: "get", value: "/v1/orders" } }] }],
    ["belong to the rule of a local service despite a pattern", [stock, orders],
      [["route GET /v1/stock/{id} of stock.v1.Stock.Count belongs to this server"], []],
      [["Stock.Count", "Stock.Get"], []], { localMethods: serviceWithRoutes("a.v1.Local", { Get: [] }).methods,
        rules: [{ selector: "a.v1.Local.Get", pattern: { case: "get", value: "/v1/stock/7" } }] }, undefined,
      [[], ["a.*"]]],
    ["belong to the rule of another upstream's service", [stock, orders],
      [["route GET /v1/stock/{id} of stock.v1.Stock.Count belongs to 1"], []], [["Stock.Count", "Stock.Get"], []],
      { rules: [{ selector: "shop.v1.Orders.Put", pattern: { case: "get", value: "/v1/stock/7" } }] }],
    ["belong to a rule of an upstream without the service", [stock, orders],
      [["route GET /v1/stock/{id} of stock.v1.Stock.Count belongs to 1"], []], [["Stock.Count", "Stock.Get"], []],
      { rules: [{ selector: "later.v1.A.Get", pattern: { case: "get", value: "/v1/stock/7" } }] }, undefined,
      [[], ["later.*"]]],
    ["are replaced by a rule, and do not clash",
      [orders, stock, serviceWithRoutes("a.v1.A", { Put: ["PUT /v1/orders"] })], [[], [], []], [[], [], []],
      { rules: [{ selector: "shop.v1.Orders.Get", pattern: { case: "get", value: "/v2/orders" } }],
        omit: ["shop.v1.Orders.Put"] }],
    ["are held while the upstream waits for an earlier one", [orders, stock, shared],
      [[], ["route GET /v1/orders of stock.v1.Stock.Get belongs to 0"], []],
      [[], ["Stock.Count", "Stock.Get"], ["Shared.Get", "Shared.Put"]], undefined, [{}, {}, { waitsFor: "1" }]],
    ["of a waiting upstream do not clash with those of a later one", [orders, shared], [[], []],
      [["Orders.Get", "Orders.Put"], []], undefined, [{ waitsFor: "x" }, {}]],
    ["at RPC paths belong to the RPC's upstream", [stock, serviceWithRoutes("a.v1.A", { Get: ["GET /a.v1.A/Get"],
          Count: ["PUT /stock.v1.Stock/Count", "PUT /stock.v1.Stock/Gone"],
        })], [[], ["route PUT /stock.v1.Stock/Count of a.v1.A.Count belongs to 0"]], [[], ["A.Get", "A.Count"]]],
  ],
)("routes %s", (_name, services, clashes, held, context, states = [], patterns = []) => {
  const upstreams = services.map(({ methods }, at) => {
    return { name: String(at), methods, isReflected: false, waitsFor: undefined, ...states[at] };
  });
  const owners = new ServiceOwners(services.map((_, at) => ({ descriptors: undefined, services: patterns[at] ?? [] })));
  const found = runSteps(findRouteClashes(upstreams, { ...nothing, owners, ...context }));
  expect(found.map((each) => each.clashes)).toEqual(clashes);
  expect(found.map((each) => each.held.map((selector) => selector.replace(/^.*\.v1\./, "")))).toEqual(held);
});

test.each([
  { route: "GET /library/{id}", isServed: true },
  { route: "GET /library.v1.Books/{id}", isServed: false },
  { route: "GET /library.v1.Books/{id}/{sub}", isServed: true },
  { route: "GET /plain/{id}", isServed: false },
  { route: "GET /own.v1.A/{id}", isServed: true },
  { route: "GET /other.v1.A/{id}", isServed: false },
  { route: "GET /other/{id}", isServed: true },
])("whether $route is served despite patterns is $isServed", ({ route, isServed }) => {
  const owners = new ServiceOwners([
    { descriptors: undefined, services: ["own.*"] },
    { descriptors: undefined, services: ["library.*", "plain", "*"] },
  ]);
  const [own, library] = find({ owners }, serviceWithRoutes("own.v1.A", { Find: [route] }));
  expect(own?.clashes).toEqual(isServed ? [] : [`route ${route} of own.v1.A.Find belongs to library`]);
  expect(library).toEqual(none);
});

/** Templates that overlap in every way, with literals, wildcards, verbs, and a literal that equals a verb. */
// oxfmt-ignore
const templates = [
  "/a", "/b", "/a/b", "/a/*", "/*", "/*/b", "/**", "/a/**", "/a/**/c", "/a/b/c", "/a/*/c", "/a:go", "/a%3Ago",
  "/a%3Ago:go", "/a/b:go", "/a/*:go", "/a/b%3Ago", "/**:go", "/a/**:go", "/%2A", "/%2A%2A", "/a/%2A/c",
];

const routes = templates.flatMap((text) =>
  ["GET", "POST", "*"].map((httpMethod) => ({ httpMethod, template: parsePathTemplate(text), owner: text })),
);

test.each(templates)("for %s, the index finds exactly the overlapping routes", (text) => {
  for (const httpMethod of ["GET", "HEAD", "POST"]) {
    const shape = { httpMethod, template: parsePathTemplate(text) };
    for (const route of routes) {
      const index = new RouteIndex<string>();
      // Another route at the same place, so that no node belongs to a single owner.
      index.add({ ...route, owner: "self" });
      index.add(route);
      expect(index.otherOwnerOf(shape, "self")).toBe(routesOverlap(route, shape) ? route.owner : undefined);
      expect(index.otherOwnerOf(shape, route.owner)).toBe(routesOverlap(route, shape) ? "self" : undefined);
    }
  }
});

test.each([
  { name: "with a common prefix", text: (at: number) => `/v1/things/{id}/x${at}` },
  { name: "below a common wildcard", text: (at: number) => `/v1/{id}/x${at}` },
  { name: "that begin with a wildcard", text: (at: number) => `/{id}/x${at}` },
])("each of 500 routes $name is compared with few others", ({ text }) => {
  const index = new RouteIndex<string>();
  let comparisons = 0;
  for (let at = 0; at < 500; at++) {
    const template = parsePathTemplate(text(at));
    const owner = at % 2 === 0 ? "even" : "odd";
    expect(index.otherOwnerOf({ httpMethod: "GET", template }, owner)).toBeUndefined();
    index.add({
      get httpMethod() {
        comparisons++;
        return "GET";
      },
      template,
      owner,
    });
  }
  expect(comparisons).toBeLessThan(500);
});

test("the index finds a template with 20,000 segments", () => {
  const index = new RouteIndex<string>();
  const template = parsePathTemplate("/a".repeat(20_000));
  index.add({ httpMethod: "GET", template, owner: "one" });
  expect(index.otherOwnerOf({ httpMethod: "GET", template }, "other")).toBe("one");
});
