import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { runSteps } from "../../../http/src/index.ts";
import { serviceWithRoutes } from "../../../testing/src/gateway/reflected-upstream.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { type RouteContext, type AssignedRoutes, assignRoutes } from "../../src/forward/assign-routes.ts";
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
