import { describe, expect, test } from "vitest";
import { instrument } from "../../tools/mutants/blocks.ts";

describe("an instrumented source", () => {
  test.each([
    {
      name: "begins with code that records the file",
      source: "let a = 1;\n",
      want: /^if \(!globalThis.*#0"\);let a = 1;\n$/,
    },
    {
      name: "keeps a #! line before the code that records the file",
      source: "#!/usr/bin/env node\nlet a = 1;\n",
      want: /^#!\/usr\/bin\/env node\nif \(!globalThis.*#0"\);let a = 1;\n$/,
    },
  ])("$name", ({ source, want }) => {
    expect(instrument(source, "src/a.ts", "/record.ts")).toMatch(want);
  });
});
