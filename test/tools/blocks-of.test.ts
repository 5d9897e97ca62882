import { describe, expect, test } from "vitest";
import { withCounts } from "../../tools/mutants/blocks-of.ts";

describe("a source that says which of its blocks are entered", () => {
  test.each([
    { name: "begins with that", source: "let a = 1;\n", want: /^if \(!globalThis.*#0"\);let a = 1;\n$/ },
    {
      name: "begins with the line that names its program, if it has one",
      source: "#!/usr/bin/env node\nlet a = 1;\n",
      want: /^#!\/usr\/bin\/env node\nif \(!globalThis.*#0"\);let a = 1;\n$/,
    },
  ])("$name", ({ source, want }) => {
    expect(withCounts(source, "src/a.ts", "/record.ts")).toMatch(want);
  });
});
