import { expect, test } from "vitest";
import { goBothWays } from "../../../../../../../testing/src/gateway/binary-oracle.ts";
import { isPeerAtLeast, numRunsOf, testSeed } from "@protoport/testing/process";

/** Number of seeds. Each seed creates new types, and several hundred messages for them. */
const seeds = numRunsOf(10);

// Older protobuf-es versions read and write some messages differently.
test.runIf(isPeerAtLeast("@bufbuild/protobuf", "2.16"))(
  "random messages are read and written as by protobuf-es",
  () => {
    const all = Array.from({ length: seeds }, (_, n) => goBothWays(testSeed + n));
    const count = (what: "read" | "written" | "odd", way: "fast" | "fallback"): number =>
      all.reduce((sum, ways) => sum + ways[what][way], 0);
    // A fallback to protobuf-es always agrees with protobuf-es, so the fast path must handle most messages.
    expect(count("read", "fast")).toBeGreaterThan(count("read", "fallback"));
    expect(count("written", "fast")).toBeGreaterThan(2 * count("written", "fallback"));
    // Some odd values are valid for their field, so both paths occur.
    expect(count("odd", "fast")).toBeGreaterThan(0);
    expect(count("odd", "fallback")).toBeGreaterThan(0);
  },
);
