import { expect, test } from "vitest";
import { descriptorSetOf, OrderService } from "@protoport/testing/proxy";
import { parseDefinition } from "../../src/definitions/definition.ts";
import { writeReport } from "../../src/definitions/report.ts";

test("writeReport only lists the problems if the gateway would not start", () => {
  const definition = parseDefinition("set.binpb", descriptorSetOf(OrderService.file));
  const result = { bindings: [], problems: ["rule 1", "rule 2"], unsupportedOptions: new Map(), tools: undefined };
  // oxfmt-ignore
  expect(writeReport(definition, result).split("\n")).toEqual(["set.binpb: 1 service, 1 RPC", "",
    "The gateway would not start, for 2 reasons:", "", "  rule 1", "  rule 2", "",
    "rest.rules overrides a rule that you cannot change, and rest.omit excludes an RPC from REST."]);
});
