import { expect, test } from "vitest";
import { isSupportedNode } from "../../src/command/is-supported-node.ts";

test.each(["24.15.0", "24.21.0", "25.9.0", "26.0.0"])('isSupportedNode returns true for "%s"', (version) => {
  expect(isSupportedNode(version)).toBe(true);
});

test.each(["22.23.3", "24.14.1", "25.8.2"])('isSupportedNode returns false for "%s"', (version) => {
  expect(isSupportedNode(version)).toBe(false);
});
