import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { blocksRunBy } from "../support/docs/page-blocks.ts";

// The drawings of docs/architecture.md and of gateway/http2: which room imports from which, and which files a frame goes
// through. The first leaves out what is generated, the public entrances, which lead to everything, and the errors
// and options of the gateway, to which everything leads.

const source = join(projectFolder, "src");
const blocks = blocksRunBy("test/examples/documented-arrows.test.ts").map(({ text }) => text);
const [drawing = "", way = ""] = ["cli →", "HEADERS →"].map((start) => blocks.find((text) => text.startsWith(start)));

/** The arrows of a drawing: "a → b, c" and chains of these, apart by a line break or by a wide gap. */
function drawnArrows(): string[] {
  return drawing.split(/\n| {3,}/).flatMap((chain) => {
    const stops = chain.split(" → ").map((stop) => stop.split(", "));
    return stops
      .slice(1)
      .flatMap((to, at) => (stops[at] ?? []).flatMap((from) => to.map((each) => `${from} → ${each}`)));
  });
}

/** What the drawing calls the room of a file; `undefined` for a file that it leaves out. */
function roomOf(file: string): string | undefined {
  const [owner = "", part = "", below = ""] = file.split("/");
  if (owner.endsWith(".ts") || ["gen", "client", "errors", "options", "package.json"].includes(part)) return undefined;
  if (part.endsWith(".ts")) return owner === "gateway" ? owner : undefined;
  return part === "carriers" && !below.endsWith(".ts") ? `${part}/${below}` : part;
}

function importedArrows(): string[] {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return files.flatMap((file) => {
    const imports = readFileSync(join(source, file), "utf8").matchAll(/from "((?:\.|@plantstore\/)[^"]+)"/g);
    return [...imports].flatMap(([, specifier = ""]) => {
      const path = specifier.startsWith(".") ? join(dirname(file), specifier) : `${specifier.slice(12)}/index.ts`;
      const [from, to] = [file, path].map(roomOf);
      if (from === undefined || to === undefined || from === to) return [];
      return [`${from} → ${to}`];
    });
  });
}

test("the drawing has the arrows that the imports have, and no other", () => {
  expect(drawnArrows().toSorted()).toEqual([...new Set(importedArrows())].toSorted());
});

// Words with a hyphen are names of files.
const files = [...new Set(way.match(/[a-z0-9]+(?:-[a-z0-9]+)+/g))];

test("the way of a frame has files", () => {
  expect(files.length).toBeGreaterThan(7);
});

test.each(files)("%s, on the way of a frame, is a file of gateway/http2", (name) => {
  expect(existsSync(join(source, "gateway/http2", `${name}.ts`))).toBe(true);
});
