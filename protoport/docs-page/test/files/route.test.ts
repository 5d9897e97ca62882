import { expect, test } from "vitest";
import { linkToOperation, linkToSchema, readRoute } from "../../src/files/route.ts";

const names = ["getShelf", "GET /v1/{shelf=shelves/*}", "100% #1?", "google.rpc.Status"];

test.each(names)("the links to the operation and schema %j name them", (name) => {
  expect(readRoute(linkToOperation(name))).toEqual({ view: "operations", name });
  expect(readRoute(linkToSchema(name))).toEqual({ view: "schemas", name });
  // A link may not contain characters that end a URL in text.
  expect(linkToOperation(name)).not.toMatch(/[ {}]/);
});

test.each([
  { hash: "", view: "overview" },
  { hash: "#", view: "overview" },
  { hash: "#/", view: "overview" },
  { hash: "#content", view: undefined },
  { hash: "#/operations/", view: undefined },
  { hash: "#/schemas/a/b", view: "schemas" },
  { hash: "#/schemas/100%", view: "schemas" },
])('readRoute returns the view $view for the fragment "$hash"', ({ hash, view }) => {
  expect(readRoute(hash)?.view).toBe(view);
});
