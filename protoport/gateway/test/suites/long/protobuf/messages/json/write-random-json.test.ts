import { expect, test } from "vitest";
import { writeRandomJson } from "../../../../../../../testing/src/gateway/both-json-writers.ts";
import { numRunsOf, testSeed } from "@protoport/testing/process";

test("generated code and closures write the same JSON", () => {
  const outcomes = { written: 0, refused: 0 };
  const first = testSeed * 1_000_003;
  for (let i = 0; i < numRunsOf(500); i++) {
    const { written, refused } = writeRandomJson(first + i);
    outcomes.written += written;
    outcomes.refused += refused;
  }
  // Older protobuf-es versions refuse more odd messages.
  expect(outcomes.written).toBeGreaterThan(outcomes.refused / 2);
  expect(outcomes.refused).toBeGreaterThan(0);
});
