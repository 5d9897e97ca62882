import { expect, test } from "vitest";
import { runProxyCommand } from "../../../../testing/src/gateway/proxy-command.ts";

test("openapi reports an unknown format once, with a hint to --help", async () => {
  expect(await runProxyCommand("openapi", "set.binpb", "--format", "xml")).toEqual({
    exitCode: 2,
    printed: "",
    errors: "protoport: --format must be json or yaml, got \"xml\"\nTry 'protoport openapi --help'.",
  });
});
