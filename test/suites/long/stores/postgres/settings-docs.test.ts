import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { leftOnConnections } from "../../../../support/plants/left-on-connections.ts";
import { projectFolder } from "../../../../../protoport/testing/src/process/child-program.ts";
import { sourceFiles } from "../../../../../protoport/testing/src/source-files.ts";

const page = join(projectFolder, "docs/reference/postgresql.md");
const text = readFileSync(page, "utf8");
const chapter = text.slice(text.indexOf("## Settings of a session"), text.indexOf("## Faults"));

/** The table's rows, with the names in the first column, and the tests in the last one. */
const rows = [...chapter.matchAll(/^\| (.*) \| .* \| (.*) \|$/gm)].slice(1).map(([, names = "", held = ""]) => ({
  names: names.split(", ").map((name) => name.replaceAll("`", "")),
  heldBy: [...held.matchAll(/\[([\w-]+)\]/g)].map(([, label]) => label ?? ""),
}));
const documented = rows.flatMap(({ names }) => names);

const links = new Map(
  [...chapter.matchAll(/^\[([\w-]+)\]: (\S+)$/gm)].map(([, label = "", path = ""]) => [
    label,
    readFileSync(join(dirname(page), path), "utf8"),
  ]),
);
const neighbors = "neighbors";

/** Settings that must be in the table. */
// oxfmt-ignore
const demanded = [
  "client_min_messages", "DateStyle", "default_transaction_isolation", "default_transaction_read_only", "role",
  "row_security", "search_path", "session_replication_role", "standard_conforming_strings", "synchronous_commit",
  "TimeZone",
];

describe("the table of session settings in docs/reference/postgresql.md", () => {
  test("lists every setting that affects a guarantee", () => {
    expect(documented).toEqual(expect.arrayContaining(demanded));
  });

  test("lists every setting that the source pins or resets", () => {
    const folder = join(projectFolder, "src/stores/postgres");
    const source = sourceFiles(folder)
      .map((name) => readFileSync(join(folder, name), "utf8"))
      .join("\n");
    const pinned = [...source.matchAll(/set_config\('([a-z_]+)'|RESET ([a-z_]+)/gi)].map(([, set, reset]) =>
      (set ?? reset ?? "").toLowerCase(),
    );
    expect(new Set(pinned).size).toBeGreaterThan(4);
    expect(documented).toEqual(expect.arrayContaining([...new Set(pinned)]));
  });

  test.each(rows)("links the tests of $names in its last column", ({ names, heldBy }) => {
    expect(heldBy).not.toEqual([]);
    for (const label of heldBy) {
      if (label !== neighbors)
        for (const name of names) expect(links.get(label)).toMatch(new RegExp(wordsOf(name), "i"));
      else expect(leftOnConnections.flatMap(({ settings }) => settings)).toEqual(expect.arrayContaining(names));
    }
  });

  test("lists all settings that the tests change on pooler connections", () => {
    const held = rows.filter(({ heldBy }) => heldBy.includes(neighbors)).flatMap(({ names }) => names);
    expect(new Set(leftOnConnections.flatMap(({ settings }) => settings))).toEqual(new Set(held));
    expect(links.get(neighbors)).toContain("leftOnConnections");
  });

  test.each(leftOnConnections)('the test change "$name" sets $settings in its SQL', ({ settings, sql }) => {
    for (const name of settings) expect(sql).toMatch(new RegExp(wordsOf(name), "i"));
  });
});

/** Returns the SQL to search for: a setting's name, or the statement that creates another kind of state. */
function wordsOf(name: string): string {
  const made: Readonly<Record<string, string>> = { "temporary tables": "TEMP TABLE", cursors: "DECLARE" };
  return made[name] ?? `\\b(?:SET|-c)\\s*${name}\\b|${name} ?=`;
}
