import { expect, test } from "vitest";
import { readJson } from "../../../../../../src/protobuf/messages/json/read-json.ts";
import { costRatio } from "../../../../../../../testing/src/cost-ratio.ts";
import { SinkSchema } from "../../../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

/** Returns a function that reads 320 kB of unknown fields below some nested messages, which are refused. */
function readUnknownBelow(levels: number): () => void {
  const names = Array.from({ length: 30_000 }, (_, at) => `"x${at}":0`).join();
  const json = `${'{"child":'.repeat(levels)}{${names}}${"}".repeat(levels)}`;
  return () => {
    expect(() => readJson(SinkSchema, json)).toThrow(/unknown fields "(child\.)+.* and 29984 more$/);
  };
}

test("readJson() refuses deeply nested unknown fields as fast as shallow ones", async () => {
  // The ratio would be four if unused field paths were built, and far higher if each level rebuilt them.
  expect(await costRatio(readUnknownBelow(97), readUnknownBelow(1))).toBeLessThan(2.5);
});
