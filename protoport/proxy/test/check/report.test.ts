import { expect, test } from "vitest";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { writeReport } from "../../src/check/report.ts";

test("writeReport only lists the problems if the gateway would not start", () => {
  const result = { services: [OrderService], bindings: [], unsupportedOptions: new Map(), tools: undefined };
  expect(writeReport("set.binpb", { ...result, problems: ["rule 1", "rule 2"] }).split("\n")).toEqual([
    "set.binpb: 1 service, 1 RPC",
    "",
    "The gateway would not start, for 2 reasons:",
    "",
    "  rule 1",
    "  rule 2",
    "",
    "rest.rules overrides a rule that you cannot change, and rest.omit excludes an RPC from REST.",
  ]);
});
