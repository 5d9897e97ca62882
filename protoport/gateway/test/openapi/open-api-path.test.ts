import { expect, test } from "vitest";
import { shapeOf, toOpenApiPath } from "../../src/openapi/open-api-path.ts";
import { parsePathTemplate } from "../../src/protocols/rest/rules/path-template.ts";

test.each(
  // oxfmt-ignore
  [
    ["the root", "/", "/", []],
    ["a variable of one segment", "/orders/{id}", "/orders/{id}", ["id field"]],
    ["a variable for a nested field", "/v1/{a.b}", "/v1/{a_b}", ["a_b field"]],
    ["two variables whose names would be the same", "/v1/{a.b}/{a_b}", "/v1/{a_b}/{a_b_}", ["a_b field", "a_b_ field"]],
    ["a variable with one wildcard among its segments", "/v1/{name=shelves/*}", "/v1/shelves/{shelf}", ["shelf part"]],
    ["a variable with several wildcards", "/v1/{name=shelves/*/books/*}", "/v1/shelves/{shelf}/books/{book}",
      ["shelf part", "book part"]],
    ["a variable with wildcards without a preceding literal", "/v1/{name=*/*/books/*/*}",
      "/v1/{name_1}/{name_2}/books/{book}/{name_4}", ["name_1 part", "name_2 part", "book part", "name_4 part"]],
    ["a literal that is not a name", "/v1/{name=a.b/*/7/*/v1/**}", "/v1/a.b/{name_1}/7/{name_2}/v1/{v1}",
      ["name_1 part", "name_2 part", "v1 segments"]],
    ["two parts with the same name", "/v1/{from=shelves/*}/to/{to=shelves/*}",
      "/v1/shelves/{shelf}/to/shelves/{shelf_}", ["shelf part", "shelf_ part"]],
    ["a variable that matches any number of segments", "/v1/{path=**}", "/v1/{path}", ["path segments"]],
    ["a variable without a wildcard", "/v1/{name=only}", "/v1/only", []],
    ["wildcards outside variables", "/v1/*/end/*", "/v1/{segment_1}/end/{segment_2}",
      ["segment_1 part", "segment_2 part"]],
    ["a path with a verb", "/v1/{id}:close", "/v1/{id}:close", ["id field"]],
    ["text that needs escapes", "/a%2Fb/%2A", "/a%2Fb/%2A", []],
  ],
)("toOpenApiPath() converts %s: template %s to path %s", (_, template, want, parameters) => {
  const written = toOpenApiPath(parsePathTemplate(template));
  expect({ path: written.path, parameters: written.parameters.map(({ name, covers }) => `${name} ${covers}`) }).toEqual(
    { path: want, parameters },
  );
});

// oxfmt-ignore
test.each([
  ["topics", "topic"], ["policies", "policy"], ["timeSeries", "time_series"], ["shelves", "shelf"], ["data", "data"],
  ["addresses", "address"], ["batches", "batch"], ["caches", "cache"], ["indexes", "index"], ["databases", "database"],
  ["releases", "release"], ["statuses", "status"], ["status", "status"], ["aliases", "alias"], ["access", "access"],
  ["cryptoKeys", "crypto_key"], ["crypto-keys", "crypto_key"], ["APIs", "api"],
])("the parameter of %s/* is named %s by toOpenApiPath()", (literal, want) =>
  expect(toOpenApiPath(parsePathTemplate(`/{name=${literal}/*}`)).parameters[0]?.name).toBe(want));

test("shapeOf() removes parameter names from a path", () =>
  expect(shapeOf("/v1/{a_b}/x/{c}:verb")).toBe("/v1/{}/x/{}:verb"));
