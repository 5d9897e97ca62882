import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";
import { blocksRunBy } from "../support/docs/page-blocks.ts";

// The drawing of packages/http-engine/src/http2/README.md: the files that a frame goes through.

const [way = ""] = blocksRunBy("test/examples/documented-frames.test.ts")
  .map(({ text }) => text)
  .filter((text) => text.startsWith("HEADERS →"));

// Words with a hyphen are names of files.
const files = [...new Set(way.match(/[a-z0-9]+(?:-[a-z0-9]+)+/g))];

test("the way of a frame has files", () => {
  expect(files.length).toBeGreaterThan(7);
});

test.each(files)("%s, on the way of a frame, is a file of http2/", (name) => {
  expect(existsSync(join(projectFolder, "packages/http-engine/src/http2", `${name}.ts`))).toBe(true);
});
