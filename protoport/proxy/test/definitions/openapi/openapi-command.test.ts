import { expect, test } from "vitest";
import { runOpenApi } from "../../suites/long/definitions/openapi/run-openapi.ts";

test("openapi reports an unknown format once, with a hint to --help", async () => {
  expect(await runOpenApi("set.binpb", "--format", "xml")).toEqual({
    exitCode: 2,
    printed: "",
    errors: "protoport: --format must be json or yaml, got \"xml\"\nTry 'protoport openapi --help'.",
  });
});
