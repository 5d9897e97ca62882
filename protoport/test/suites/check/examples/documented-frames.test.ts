import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// The diagram in protoport/gateway/src/engine/http2/README.md shows which files process a frame.

const [way = ""] = blocksRunBy("protoport/test/suites/check/examples/documented-frames.test.ts")
  .map(({ text }) => text)
  .filter((text) => text.startsWith("HEADERS →"));

// Words with a hyphen are file names.
const files = [...new Set(way.match(/[a-z0-9]+(?:-[a-z0-9]+)+/g))];

test("the frame diagram names more than seven files", () => {
  expect(files.length).toBeGreaterThan(7);
});

test.each(files)("%s in the frame diagram is a file in http2/", (name) => {
  expect(existsSync(join(projectFolder, "protoport/gateway/src/engine/http2", `${name}.ts`))).toBe(true);
});
