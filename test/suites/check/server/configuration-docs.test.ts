import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { defaultText, flagOf, type PlantSetting } from "../../../../src/server/setting-types.ts";
import { settingGroups, settings } from "../../../../src/server/settings.ts";

const docs = readFileSync(new URL("../../../../docs/reference/configuration.md", import.meta.url), "utf8");
const documented = docs.split("\n").filter((line) => /^### |^\| `[A-Z0-9_]+` \|/.test(line));

function rowOf(setting: PlantSetting): string {
  const initial = defaultText(setting);
  return `| ${[`\`${setting.variable}\``, initial ? `\`${initial}\`` : "–", setting.about].join(" | ")} |`;
}

test("docs/reference/configuration.md has exactly the settings, by group, with their defaults and descriptions", () =>
  expect(documented).toEqual(settingGroups.flatMap((group) => [`### ${group.title}`, ...group.settings.map(rowOf)])));

test("settingGroups has every setting once, in the table's order", () =>
  expect(settingGroups.flatMap((group) => group.settings)).toEqual(Object.values(settings)));

test("every setting except PLANTSTORE_TOKENS has the documented flag", () => {
  const found = docs.replaceAll("\n", " ");
  expect(found).toContain(`\`${settings.jwtKeysUrls.variable}\` is \`--${String(flagOf(settings.jwtKeysUrls))}\``);
  const named = Object.values(settings).filter(({ variable }) => variable !== "PLANTSTORE_TOKENS");
  expect(named.map(flagOf)).toEqual(
    named.map(({ variable }) => variable.replace("PLANTSTORE_", "").toLowerCase().replaceAll("_", "-")),
  );
  expect(flagOf(settings.tokens)).toBeUndefined();
});
