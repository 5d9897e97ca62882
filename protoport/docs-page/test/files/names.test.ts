import { expect, test } from "vitest";
import type { Description } from "../../src/files/description.ts";
import { linkToName } from "../../src/files/names.ts";

const rpc = { procedure: "/library.v1.Library/GetShelf", path: "/shelves" };
const description: Description = {
  info: { title: "t", version: "1" },
  paths: {
    "/books": { get: { operationId: "listBooks", responses: {} } },
    "/shelves": { get: { operationId: "getShelf", responses: {}, "x-rpc": rpc } },
  },
  components: { schemas: { Shelf: {}, "Shelf.Part": {}, "google.rpc.Status": {} } },
};

test.each([
  { name: "library.v1.Library.GetShelf", want: "#/operations/getShelf" },
  { name: "library.v1.Library.ListBooks", want: undefined },
  { name: "library.v1.Shelf", want: "#/schemas/Shelf" },
  { name: "library.v1.Shelf.theme", want: "#/schemas/Shelf" },
  { name: "library.v1.Shelf.Part", want: "#/schemas/Shelf.Part" },
  { name: "google.rpc.Status", want: "#/schemas/google.rpc.Status" },
  { name: "google.rpc.Status.code", want: "#/schemas/google.rpc.Status" },
  { name: "other.v1.Shelf", want: undefined },
  { name: "constructor", want: undefined },
])("linkToName returns $want for the full name $name in a description", ({ name, want }) => {
  expect(linkToName(description, name)).toBe(want);
});

test("linkToName returns no link if the description has no schemas", () =>
  expect(linkToName({ ...description, components: {} }, "library.v1.Shelf")).toBeUndefined());
