import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { leftOnConnections } from "../../../../support/plants/left-on-connections.ts";
import { projectFolder } from "@protoport/testing/process";
import { sourceFiles } from "../../../../../protoport/testing/src/source-files.ts";

// The settings in docs/reference/postgresql.md. The suite `crash` tests leftOnConnections behind PgBouncer.

const read = (path: string): string => readFileSync(join(projectFolder, path), "utf8");
const page = read("docs/reference/postgresql.md");
const chapter = page.slice(page.indexOf("## Settings of a session"), page.indexOf("## Faults"));

/** The settings with tests on a single session, and kinds of state with tests of qualified names. */
// oxfmt-ignore
const onSessions = {
  "session-settings.test.ts": [
    "synchronous_commit", "client_min_messages", "session_replication_role", "role", "default_transaction_read_only",
    "row_security", "default_transaction_isolation", "DateStyle", "IntervalStyle", "TimeZone",
    "standard_conforming_strings", "array_nulls", "extra_float_digits", "quote_all_identifiers",
    "transform_null_equals", "lock_timeout", "statement_timeout",
  ],
  "schema/store-schema.test.ts": ["search_path", "temporary tables"],
};
const behindPoolers = leftOnConnections.flatMap(({ settings }) => settings);
const tested = new Set([...Object.values(onSessions).flat(), ...behindPoolers]);

describe("the settings of a session in docs/reference/postgresql.md", () => {
  test("are those with tests", () => {
    const documented = [...chapter.matchAll(/`([a-z_]+)`/gi)].map(([, name = ""]) => name);
    const settings = [...tested].filter((name) => name !== "temporary tables" && name !== "cursors");
    expect(new Set(documented)).toEqual(new Set([...settings, "Unavailable", "pg_catalog"]));
    expect(chapter).toContain("temporary tables, cursors");
  });

  test("include every setting that the source pins or resets", () => {
    const folder = "src/stores/postgres";
    const files = sourceFiles(join(projectFolder, folder));
    const source = files.map((name) => read(join(folder, name))).join("\n");
    const pinned = [...source.matchAll(/set_config\('([a-z_]+)'|RESET ([a-z_]+)/gi)].map(([, set, reset]) =>
      (set ?? reset ?? "").toLowerCase(),
    );
    expect(new Set(pinned).size).toBeGreaterThan(4);
    expect([...tested]).toEqual(expect.arrayContaining([...new Set(pinned)]));
  });

  test.each(Object.entries(onSessions))("are changed in %s", (file, names) => {
    const text = read(join("test/suites/long/stores/postgres", file));
    for (const name of names) expect(text).toMatch(new RegExp(sqlOf(name), "i"));
  });

  test.each(leftOnConnections)('the test change "$name" sets $settings in its SQL', ({ settings, sql }) => {
    for (const name of settings) expect(sql).toMatch(new RegExp(sqlOf(name), "i"));
  });
});

/** Returns the SQL to search for: a setting's name, or the statement that creates another kind of state. */
function sqlOf(name: string): string {
  const made: Readonly<Record<string, string>> = { "temporary tables": "TEMP TABLE", cursors: "DECLARE" };
  return made[name] ?? `\\b(?:SET|-c)\\s*${name}\\b|${name} ?=`;
}
