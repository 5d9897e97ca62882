import { expect, test } from "vitest";
import { type GetShelfRequest, Shelves } from "../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createGateway } from "../src/index.ts";

// Names in field masks that have no JSON form (field_mask.proto). The corpus tests that responses cannot contain them.

const names = [
  { sent: "address_line_1", path: "address_line_1" },
  { sent: "field_1x", path: "field_1x" },
  { sent: "`camelCase`", path: "camelCase" },
  { sent: "`Capital`", path: "Capital" },
  { sent: "trailing_", path: "trailing_" },
  { sent: "two__underscores", path: "two__underscores" },
];

test.each(names)("the field mask $sent reaches the handler of a request", async ({ sent, path }) => {
  let paths: unknown;
  const getShelf = ({ readMask }: GetShelfRequest): object => {
    paths = readMask?.paths;
    return {};
  };
  const { fetch } = createGateway({ routes: (router) => router.service(Shelves, { getShelf }) });
  const { status } = await fetch(new Request(`http://a/v1/shelves/1?readMask=${encodeURIComponent(sent)}`));
  expect([status, paths]).toEqual([200, [path]]);
});
