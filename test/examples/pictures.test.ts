import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { drawPictures } from "../../tools/draw-pictures.ts";
import { projectFolder } from "../support/process/child-program.ts";

test.each(Object.entries(drawPictures()))("docs/pictures/%s is what tools/draw-pictures.ts draws", (name, drawn) => {
  expect(readFileSync(join(projectFolder, "docs/pictures", name), "utf8")).toBe(drawn);
});
