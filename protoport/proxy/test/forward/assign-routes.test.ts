import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { runSteps } from "../../../gateway/src/http/index.ts";
import { serviceWithRoutes } from "../../../testing/src/gateway/reflected-upstream.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { Letters, Samples } from "../../../testing/src/gen/moved/v1/moved_pb.ts";
import {
  type AssignedRoutes,
  assignRoutes,
  type RouteClaims,
  type RouteContext,
} from "../../src/forward/assign-routes.ts";
import { ServiceOwners } from "../../src/upstreams/index.ts";

/** Assigns routes to two upstreams, `shelves` and `library`. */
function share(context: Partial<RouteContext> = {}, shelves: DescService = Shelves): AssignedRoutes {
  const upstream = { waitsForEarlier: false, isUnknown: false };
  const upstreams = [
    { ...upstream, name: "shelves", methods: shelves.methods },
    { ...upstream, name: "library", methods: LibraryService.methods },
  ];
  const nothing = { localMethods: [], reservedPaths: new Set<string>(), rules: [], omit: [] };
  return runSteps(
    assignRoutes(upstreams, {
      ...nothing,
      owners: new ServiceOwners([{ descriptors: undefined }, { descriptors: undefined }]),
      ...context,
    }),
  );
}

test("routes that do not overlap are all served", () => {
  expect(share()).toEqual({ rules: [], omit: [], conflicts: [[], []] });
});

test("a route at an endpoint's path is omitted", () => {
  const { conflicts, omit } = share({ reservedPaths: new Set(["/v1/books"]) });
  expect(conflicts).toEqual([
    [],
    ["route GET /v1/books belongs to this server", "route POST /v1/books belongs to this server"],
  ]);
  expect(omit).toEqual(["library.v1.LibraryService.ListBooks", "library.v1.LibraryService.CreateBook"]);
});

test("a route at the path of a configured rule is omitted", () => {
  const rule = { selector: "a.B.C", pattern: { case: "post", value: "/v1/shelves:get" } } as const;
  const { conflicts, rules, omit } = share({ rules: [rule] });
  expect(conflicts).toEqual([["route POST /v1/shelves:get belongs to a rule of the configuration"], []]);
  expect(omit).toEqual([]);
  expect(rules.at(-1)).toMatchObject({
    selector: "kitchensink.v1.Shelves.GetShelf",
    pattern: { case: "get", value: "/v1/{name=shelves/*}" },
    additionalBindings: [],
  });
});

/** Returns the conflicts of a route with the RPC paths of an upstream that has service patterns. */
function conflictsOf(route: string): readonly string[] {
  const owners = new ServiceOwners([{ descriptors: undefined }, { descriptors: undefined, services: ["library.*"] }]);
  return share({ owners }, serviceWithRoutes("shelves.v1.Shelves", { Find: [route] })).conflicts.flat();
}

test.each(["*", "GET", "POST"])("a route %s /{id}/{sub} is omitted for another upstream's RPC paths", (httpMethod) => {
  const route = `${httpMethod} /{id}/{sub}`;
  expect(conflictsOf(route)).toEqual([`route ${route} belongs to library`]);
});

test("a route PUT /{id}/{sub} is served despite another upstream's RPC paths", () => {
  expect(conflictsOf("PUT /{id}/{sub}")).toEqual([]);
});

const [orders, stock, shared] = [
  serviceWithRoutes("shop.v1.Orders", { Get: ["GET /v1/orders/{id}", "GET /v1/orders"], Put: ["PUT /v1/orders"] }),
  serviceWithRoutes("stock.v1.Stock", { Count: ["GET /v1/stock/{id}"], Get: ["GET /v1/orders"], Later: [] }),
  serviceWithRoutes("a.v1.Shared", {
    Get: ["GET /v1/orders/7", "GET /v1/{id=**}", "GET /v1/{"],
    Put: ["PUT /v1/orders"],
  }),
];

test.each<{
  name: string;
  services: readonly DescService[];
  patterns?: readonly (readonly string[])[];
  states?: readonly Partial<RouteClaims>[];
  context?: Partial<RouteContext>;
  conflicts: readonly (readonly string[])[];
  omit?: readonly string[];
}>([
  {
    name: "belong to the first of three upstreams",
    services: [orders, stock, shared],
    conflicts: [
      [],
      ["route GET /v1/orders belongs to 0"],
      [
        "route GET /v1/orders/7 belongs to 0",
        "route GET /v1/{id=**} belongs to 0",
        "route PUT /v1/orders belongs to 0",
      ],
    ],
    omit: ["stock.v1.Stock.Get", "a.v1.Shared.Put"],
  },
  {
    name: "may overlap within an upstream",
    services: [shared],
    conflicts: [[]],
  },
  {
    name: "belong to this server's annotations first",
    services: [stock],
    context: { localMethods: [...orders.methods, ...shared.methods] },
    conflicts: [["route GET /v1/stock/{id} belongs to this server", "route GET /v1/orders belongs to this server"]],
    omit: ["stock.v1.Stock.Count", "stock.v1.Stock.Get"],
  },
  {
    name: "belong to the rule of a local service",
    services: [stock],
    context: {
      localMethods: serviceWithRoutes("a.v1.Local", { Get: [] }).methods,
      rules: [{ selector: "a.v1.Local.Get", pattern: { case: "get", value: "/v1/orders" } }],
    },
    conflicts: [["route GET /v1/orders belongs to this server"]],
    omit: ["stock.v1.Stock.Get"],
  },
  {
    name: "belong to the rule of a local service despite a pattern",
    services: [stock, orders],
    patterns: [[], ["a.*"]],
    context: {
      localMethods: serviceWithRoutes("a.v1.Local", { Get: [] }).methods,
      rules: [{ selector: "a.v1.Local.Get", pattern: { case: "get", value: "/v1/stock/7" } }],
    },
    conflicts: [["route GET /v1/stock/{id} belongs to this server"], ["route GET /v1/orders belongs to 0"]],
    omit: ["stock.v1.Stock.Count"],
  },
  {
    name: "belong to the rule of another upstream's service",
    services: [stock, orders],
    context: { rules: [{ selector: "shop.v1.Orders.Put", pattern: { case: "get", value: "/v1/stock/7" } }] },
    conflicts: [["route GET /v1/stock/{id} belongs to 1"], ["route GET /v1/orders belongs to 0"]],
    omit: ["stock.v1.Stock.Count"],
  },
  {
    name: "belong to a rule of an upstream without the service",
    services: [stock, orders],
    patterns: [[], ["later.*"]],
    context: { rules: [{ selector: "later.v1.A.Get", pattern: { case: "get", value: "/v1/stock/7" } }] },
    conflicts: [["route GET /v1/stock/{id} belongs to 1"], ["route GET /v1/orders belongs to 0"]],
    omit: ["stock.v1.Stock.Count"],
  },
  {
    name: "are replaced by a rule, and not assigned",
    services: [orders, stock, serviceWithRoutes("a.v1.A", { Put: ["PUT /v1/orders"] })],
    context: {
      rules: [{ selector: "shop.v1.Orders.Get", pattern: { case: "get", value: "/v2/orders" } }],
      omit: ["shop.v1.Orders.Put"],
    },
    conflicts: [[], [], []],
    omit: ["shop.v1.Orders.Put"],
  },
  {
    name: "wait for an unknown earlier upstream",
    services: [orders, stock, shared],
    states: [{}, { isUnknown: true, waitsForEarlier: true }, { waitsForEarlier: true }],
    conflicts: [
      [],
      ["route GET /v1/orders belongs to 0"],
      ["its REST routes are not served before the descriptors of 1 are known"],
    ],
    omit: ["stock.v1.Stock.Get", "a.v1.Shared.Get", "a.v1.Shared.Put"],
  },
  {
    name: "do not wait for later upstreams",
    services: [orders, shared],
    states: [{ waitsForEarlier: true }, { isUnknown: true }],
    conflicts: [[], expect.objectContaining({ length: 3 })],
    omit: ["a.v1.Shared.Put"],
  },
  {
    name: "of an operator's descriptors do not wait",
    services: [stock, serviceWithRoutes("a.v1.A", { Get: ["GET /v1/a"] })],
    states: [{ isUnknown: true }, {}],
    conflicts: [[], []],
  },
  {
    name: "at RPC paths belong to the RPC's upstream",
    services: [
      stock,
      serviceWithRoutes("a.v1.A", {
        Get: ["GET /a.v1.A/Get"],
        Count: ["PUT /stock.v1.Stock/Count", "PUT /stock.v1.Stock/Gone"],
      }),
    ],
    conflicts: [[], ["route PUT /stock.v1.Stock/Count belongs to 0"]],
  },
])("routes $name", ({ services, patterns = [], states = [], context, conflicts, omit = [] }) => {
  const upstreams = services.map(({ methods }, at) => {
    return { name: String(at), methods, waitsForEarlier: false, isUnknown: false, ...states[at] };
  });
  const owners = new ServiceOwners(services.map((_, at) => ({ descriptors: undefined, services: patterns[at] ?? [] })));
  const nothing = { localMethods: [], reservedPaths: new Set<string>(), rules: [], omit: [] };
  const assigned = runSteps(assignRoutes(upstreams, { ...nothing, owners, ...context }));
  expect([assigned.conflicts, assigned.omit]).toEqual([conflicts, omit]);
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
  const { conflicts } = share({ owners }, serviceWithRoutes("own.v1.A", { Find: [route] }));
  expect(conflicts).toEqual([isServed ? [] : [`route ${route} belongs to library`], []]);
});

test.each([
  {
    service: Letters,
    taken: "POST /v1/letter_body",
    kept: { body: "mark", responseBody: "", pattern: { value: "/v1/letter_body/{id}" }, additionalBindings: [] },
  },
  {
    service: Samples,
    taken: "GET /v2/wait",
    kept: { body: "", additionalBindings: [{ body: "*", pattern: { value: "/v2/wait/with_body" } }] },
  },
  {
    service: KitchenSink,
    taken: "GET /v1/response/nested",
    kept: {
      responseBody: "tags",
      additionalBindings: expect.arrayContaining([expect.objectContaining({ responseBody: "labels" })]),
    },
  },
])("routes without $taken keep their bodies and response bodies", ({ service, taken, kept }) => {
  const [kind = "", path = ""] = taken.split(" ");
  const rule = { selector: "a.B.C", pattern: { case: "custom", value: { kind, path } } } as const;
  expect(share({ rules: [rule] }, service).rules.slice(1)).toMatchObject([kept]);
});
