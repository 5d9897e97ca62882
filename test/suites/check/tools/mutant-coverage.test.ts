import { describe, expect, test } from "vitest";
import { instrument } from "../../../../tools/mutants/blocks.ts";

describe("an instrumented source", () => {
  test.each([
    ["begins with code that records the file", "let a = 1;\n", /^if \(!globalThis.*#0"\);let a = 1;\n$/],
    [
      "keeps a #! line before the code that records the file",
      "#!/usr/bin/env node\nlet a = 1;\n",
      /^#!\/usr\/bin\/env node\nif \(!globalThis.*#0"\);let a = 1;\n$/,
    ],
  ])("%s", (_name, source, want) => {
    expect(instrument(source, "src/a.ts", "/record.ts")).toMatch(want);
  });
});
