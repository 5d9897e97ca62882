import { describe, expect, test } from "vitest";
import { Shelves } from "../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createGateway } from "../src/index.ts";

// Names in field masks that have no JSON form (field_mask.proto). Requests may contain them, responses may not.

const names = [
  { sent: "address_line_1", path: "address_line_1" },
  { sent: "field_1x", path: "field_1x" },
  { sent: "`camelCase`", path: "camelCase" },
  { sent: "`Capital`", path: "Capital" },
  { sent: "trailing_", path: "trailing_" },
  { sent: "two__underscores", path: "two__underscores" },
];

/** Requests a shelf with a mask. Returns the status, and the paths that the handler got. */
async function getShelf(readMask: string, echoes: boolean): Promise<readonly [httpStatus: number, paths: unknown]> {
  let paths: unknown;
  const { fetch } = createGateway({
    routes: (router) =>
      router.service(Shelves, {
        getShelf: (request) => {
          paths = request.readMask?.paths;
          return echoes ? request : {};
        },
      }),
    onFault: () => {},
  });
  const response = await fetch(new Request(`http://a/v1/shelves/1?readMask=${encodeURIComponent(readMask)}`));
  return [response.status, paths];
}

describe.each(names)("the field mask $sent", ({ sent, path }) => {
  test("reaches the handler of a request", async () => {
    expect(await getShelf(sent, false)).toEqual([200, [path]]);
  });

  test("causes status 500 in a response", async () => {
    expect(await getShelf(sent, true)).toEqual([500, [path]]);
  });
});
