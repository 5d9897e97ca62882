import { expect, test } from "vitest";
import { isSupportedNode } from "../../../../src/command/is-supported-node.ts";

test.each([
  { version: "22.23.3", want: false },
  { version: "24.14.1", want: false },
  { version: "24.15.0", want: true },
  { version: "24.21.0", want: true },
  { version: "25.8.2", want: false },
  { version: "25.9.0", want: true },
  { version: "26.0.0", want: true },
])("isSupportedNode returns $want if $version is the version", ({ version, want }) => {
  expect(isSupportedNode(version)).toBe(want);
});
