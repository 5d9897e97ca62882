import { expect, test } from "vitest";
import { shapeOf, toOpenApiPath } from "../../../src/gateway/openapi/open-api-path.ts";
import { parsePathTemplate } from "../../../src/gateway/rest/parse-path-template.ts";

test.each([
  { name: "the root", template: "/", want: "/", parameters: [] },
  { name: "a variable of one segment", template: "/plants/{id}", want: "/plants/{id}", parameters: ["id field"] },
  { name: "a variable inside of a message", template: "/v1/{a.b}", want: "/v1/{a_b}", parameters: ["a_b field"] },
  {
    name: "two variables whose names would be one",
    template: "/v1/{a.b}/{a_b}",
    want: "/v1/{a_b}/{a_b_}",
    parameters: ["a_b field", "a_b_ field"],
  },
  {
    name: "a variable with one wildcard among its segments",
    template: "/v1/{name=shelves/*}",
    want: "/v1/shelves/{shelf}",
    parameters: ["shelf part"],
  },
  {
    name: "a variable with several wildcards",
    template: "/v1/{name=shelves/*/books/*}",
    want: "/v1/shelves/{shelf}/books/{book}",
    parameters: ["shelf part", "book part"],
  },
  {
    name: "a variable with wildcards behind no literal of its own",
    template: "/v1/{name=*/*/books/*/*}",
    want: "/v1/{name_1}/{name_2}/books/{book}/{name_4}",
    parameters: ["name_1 part", "name_2 part", "book part", "name_4 part"],
  },
  {
    name: "a literal that is no name",
    template: "/v1/{name=a.b/*/7/*/v1/**}",
    want: "/v1/a.b/{name_1}/7/{name_2}/v1/{v1}",
    parameters: ["name_1 part", "name_2 part", "v1 segments"],
  },
  {
    name: "two parts of one name",
    template: "/v1/{from=shelves/*}/to/{to=shelves/*}",
    want: "/v1/shelves/{shelf}/to/shelves/{shelf_}",
    parameters: ["shelf part", "shelf_ part"],
  },
  {
    name: "a variable that takes any number of segments",
    template: "/v1/{path=**}",
    want: "/v1/{path}",
    parameters: ["path segments"],
  },
  { name: "a variable without a wildcard", template: "/v1/{name=only}", want: "/v1/only", parameters: [] },
  {
    name: "wildcards outside variables",
    template: "/v1/*/end/*",
    want: "/v1/{segment_1}/end/{segment_2}",
    parameters: ["segment_1 part", "segment_2 part"],
  },
  { name: "a verb", template: "/v1/{id}:close", want: "/v1/{id}:close", parameters: ["id field"] },
  { name: "text that needs escapes", template: "/a%2Fb/%2A", want: "/a%2Fb/%2A", parameters: [] },
])("toOpenApiPath() writes $name", ({ template, want, parameters }) => {
  const written = toOpenApiPath(parsePathTemplate(template));
  expect({ path: written.path, parameters: written.parameters.map(({ name, covers }) => `${name} ${covers}`) }).toEqual(
    { path: want, parameters },
  );
});

test.each([
  ["topics", "topic"],
  ["policies", "policy"],
  ["timeSeries", "time_series"],
  ["shelves", "shelf"],
  ["addresses", "address"],
  ["batches", "batch"],
  ["caches", "cache"],
  ["indexes", "index"],
  ["databases", "database"],
  ["releases", "release"],
  ["statuses", "status"],
  ["status", "status"],
  ["aliases", "alias"],
  ["cryptoKeys", "crypto_key"],
  ["crypto-keys", "crypto_key"],
  ["access", "access"],
  ["data", "data"],
  ["APIs", "api"],
])("toOpenApiPath() names a member of %s %s", (literal, want) => {
  expect(toOpenApiPath(parsePathTemplate(`/{name=${literal}/*}`)).parameters[0]?.name).toBe(want);
});

test("shapeOf() is the same for paths that differ in the names of their parameters alone", () => {
  expect(shapeOf("/v1/{a_b}/x/{c}:verb")).toBe("/v1/{}/x/{}:verb");
});
