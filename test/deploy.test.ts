import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { settings } from "../src/server/index.ts";

const folder = join(import.meta.dirname, "../deploy");
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
  /\.\w+$|Dockerfile/.test(name),
);

const known: ReadonlySet<string> = new Set(Object.values(settings).map(({ variable }) => variable));

describe("an example of a deployment", () => {
  test.each(files)("%s sets nothing that the server does not know", (name) => {
    const text = readFileSync(join(folder, name), "utf8");
    const named = [...text.matchAll(/\b(?:PLANTSTORE_[A-Z_]+[A-Z]|DATABASE_URL|TLS_[A-Z_]+)\b/g)].map(
      ([variable]) => variable,
    );
    expect(named.filter((variable) => !known.has(variable))).toEqual([]);
  });

  test("is listed in the table of its folder", () => {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const listed = [...readme.matchAll(/^\| \[([^\]]+)\]/gm)].map(([, name]) => name);
    const there = files.filter((name) => name !== "README.md" && !name.endsWith(".dockerignore"));
    expect(new Set(listed)).toEqual(new Set(there));
  });
});
