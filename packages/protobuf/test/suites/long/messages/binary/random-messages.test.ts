import { expect, test } from "vitest";
import { goBothWays } from "../../../../../../testing/src/gateway/binary-oracle.ts";
import { numRunsOf, testSeed } from "../../../../../../testing/src/test-seed.ts";
import { isSince } from "../../../../../../testing/src/peer-version.ts";

/** Each creates its own types and some hundred messages for them. */
const seeds = numRunsOf(10);

// Older protobuf-es versions read and write some messages differently.
test.runIf(isSince("@bufbuild/protobuf", "2.16"))(
  "random messages of random types are read and written as protobuf-es does",
  () => {
    const all = Array.from({ length: seeds }, (_, n) => goBothWays(testSeed + n));
    const count = (what: "read" | "written" | "odd", way: "fast" | "fallback"): number =>
      all.reduce((sum, ways) => sum + ways[what][way], 0);
    // Code that leaves everything to protobuf-es would agree with it, too.
    expect(count("read", "fast")).toBeGreaterThan(count("read", "fallback"));
    expect(count("written", "fast")).toBeGreaterThan(2 * count("written", "fallback"));
    // Some odd values are valid where they occur.
    expect(count("odd", "fast")).toBeGreaterThan(0);
    expect(count("odd", "fallback")).toBeGreaterThan(0);
  },
);
