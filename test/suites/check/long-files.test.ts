import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";

// The linter limits files to 400 lines. Its configuration lists the exceptions, which must still be necessary.

const maxLines = 400;

interface Override {
  readonly files: readonly string[];
  readonly rules: { readonly "max-lines"?: "off" | readonly ["error", number] };
}

// The configuration has comments.
const text = readFileSync(join(projectFolder, ".oxlintrc.json"), "utf8").replaceAll(/^ *\/\/.*$/gm, "");
const config: { readonly rules: Override["rules"]; readonly overrides: readonly Override[] } = JSON.parse(text);
const exceptions = config.overrides
  .filter(({ rules }) => rules["max-lines"] !== undefined)
  .flatMap(({ files }) => files);

test(`the linter limits files to ${maxLines} lines`, () => {
  expect(config.rules["max-lines"]).toEqual(["error", maxLines]);
});

test.each(exceptions)("the exception %s exists, and is longer than the limit", (file) => {
  expect(existsSync(join(projectFolder, file))).toBe(true);
  expect(readFileSync(join(projectFolder, file), "utf8").split("\n").length - 1).toBeGreaterThan(maxLines);
});
