import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { flagOf, type Setting } from "../../src/server/setting-readers.ts";
import { settingGroups, settings } from "../../src/server/settings.ts";

const docs = readFileSync(new URL("../../docs/reference/configuration.md", import.meta.url), "utf8");
const documented = docs.split("\n").filter((line) => /^### |^\| `[A-Z0-9_]+` \|/.test(line));

function rowOf({ variable, fallback, about }: Setting<unknown>): string {
  return `| ${[`\`${variable}\``, fallback ? `\`${fallback}\`` : "–", about].join(" | ")} |`;
}

test("docs/reference/configuration.md has a row for every setting, under its group, and no other", () => {
  expect(documented).toEqual(settingGroups.flatMap((group) => [`### ${group.title}`, ...group.settings.map(rowOf)]));
});

test("every setting is in one group, in the order of the table", () => {
  expect(settingGroups.flatMap((group) => group.settings)).toEqual(Object.values(settings));
});

test("flags are named as docs/reference/configuration.md says, and PLANTSTORE_TOKENS alone has none", () => {
  expect(docs.replaceAll("\n", " ")).toContain(
    `that of \`${settings.jwksUrls.variable}\` is \`--${String(flagOf(settings.jwksUrls))}\``,
  );
  const named = Object.values(settings).filter(({ variable }) => variable !== "PLANTSTORE_TOKENS");
  expect(named.map(flagOf)).toEqual(
    named.map(({ variable }) => variable.replace("PLANTSTORE_", "").toLowerCase().replaceAll("_", "-")),
  );
  expect(flagOf(settings.tokens)).toBeUndefined();
});
