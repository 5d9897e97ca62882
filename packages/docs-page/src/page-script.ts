import { readFileSync } from "node:fs";
import { createRequire, stripTypeScriptTypes } from "node:module";
import { pageFile } from "./page-file.ts";

/**
 * Writes the scripts of `files/` as one, with the reader of CommonMark that they use before them, so that a browser asks
 * once. Done by `npm run build` for the package, and in a checkout when the page is first asked for.
 *
 * Each module becomes the value of a function: its imports are taken out of the values of others, and what it exports is
 * what its function returns. So `files/` has named imports and `export function`, `export const` alone.
 */
export function writePageScript(): string {
  const written = new Set<string>();
  const marked = readFileSync(
    createRequire(import.meta.url)
      .resolve("marked")
      .replace(/esm\.js$/, "umd.js"),
    "utf8",
  );
  return [marked, ...modulesOf("page", written)].join("\n");
}

/** Returns a module after those that it imports, except for what was written before. */
function modulesOf(name: string, written: Set<string>): string[] {
  if (written.has(name)) return [];
  written.add(name);
  const text = stripTypeScriptTypes(readFileSync(pageFile(`${name}.ts`), "utf8"));
  const imported = [...text.matchAll(imports)].flatMap(([, , path = ""]) => (path.startsWith("./") ? [path] : []));
  const before = imported.flatMap((path) => modulesOf(nameOf(path), written));
  const exported = [...text.matchAll(exports)].map(([, , local]) => local);
  const body = text
    .replaceAll(imports, (_, names: string, path: string) => `const {${names}} = ${variableOf(nameOf(path))};`)
    .replaceAll(exports, "$1$2");
  // Only the entry exports nothing, and only it may wait for something.
  if (exported.length === 0) return [...before, body];
  return [...before, `const ${variableOf(name)} = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();`];
}

const imports = /^import \{([^}]*)\} from "([^"]+)";$/gm;
const exports = /export ((?:async )?function\*? |const )(\w+)/g;

function nameOf(path: string): string {
  return path.replace(/^\.\//, "").replace(/\.js$/, "");
}

function variableOf(name: string): string {
  return name === "marked" ? name : `$${name.replaceAll("-", "_")}`;
}
