import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Setting } from "../../src/server/setting-readers.ts";
import { settings } from "../../src/server/settings.ts";

const docs = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
const documented = docs.split("\n").filter((line) => /^\| `[A-Z0-9_]+` \|/.test(line));

function rowOf({ variable, flag, fallback, required, about }: Setting<unknown>): string {
  const unset = required ? "required" : "–";
  const cells = [`\`${variable}\``, flag ? `\`--${flag}\`` : "–", fallback ? `\`${fallback}\`` : unset, about];
  return `| ${cells.join(" | ")} |`;
}

test("docs/configuration.md has a row for every setting, in the order of the table, and no other", () => {
  expect(documented).toEqual(Object.values(settings).map(rowOf));
});
