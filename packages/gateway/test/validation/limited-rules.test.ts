import { create, type DescMessage } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { openTimeLimit, prepareLimited } from "../../src/validation/limited-rules.ts";

const rules = {
  owners: 1,
  patternCharacters: 0,
  ruledTypes: new Set<DescMessage>(),
  expressions: new Map<string, string>(),
};

test("a message is checked again if the process did not run during the time limit", async () => {
  const limit = openTimeLimit();
  let checks = 0;
  const checkOf = prepareLimited(rules, limit, () => () => () => {
    checks++;
    // As on a machine that runs other processes.
    if (checks === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  });
  checkOf(EmptySchema)?.(create(EmptySchema), Object.create(null));
  expect(checks).toBe(2);
});
