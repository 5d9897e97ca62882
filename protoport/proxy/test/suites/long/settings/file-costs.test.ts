import { expect, test } from "vitest";
import { readProxyConfiguration } from "../../../../src/settings/index.ts";
import { costRatio } from "../../../../../testing/src/cost-ratio.ts";

function readUnknown(count: number): () => void {
  const keys = Array.from({ length: count }, (_, at) => `unknown${at}: 1\n`).join("");
  const text = `upstreams:\n- addresses: [http://127.0.0.1:1]\n  descriptors: reflection\n${keys}`;
  return () => expect(() => readProxyConfiguration({ name: "a.yaml", text }, {})).toThrow("unknown0 is not a setting");
}

test("reading proxy.yaml takes linear time with many unknown settings", async () => {
  // 4 for a linear reader, and 16 for one that compares each key with all others.
  expect(await costRatio(readUnknown(20_000), readUnknown(5_000), 3)).toBeLessThan(8);
});
