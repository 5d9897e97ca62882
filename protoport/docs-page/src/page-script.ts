import { readFileSync } from "node:fs";
import { createRequire, stripTypeScriptTypes } from "node:module";
import { pageFile } from "./page-file.ts";

/**
 * Bundles the scripts in `files/` with their CommonMark parser, so that a browser sends one request. `npm run build`
 * calls the function for the package. In a checkout, the first request for the page calls the function.
 *
 * Each module becomes a function that returns the module's exports. Imports become variables that hold the exports of
 * other modules. Therefore `files/` may use only named imports, `export function` and `export const`.
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

/** Returns the code of a module and its imports, imports first. Omits modules in `written`. */
function modulesOf(name: string, written: Set<string>): string[] {
  if (written.has(name)) return [];
  written.add(name);
  const text = stripTypeScriptTypes(readFileSync(pageFile(`${name}.ts`), "utf8"));
  const imported = [...text.matchAll(imports)].flatMap(([, , path = ""]) => (path.startsWith("./") ? [path] : []));
  const dependencies = imported.flatMap((path) => modulesOf(moduleNameOf(path), written));
  const exported = [...text.matchAll(exports)].map(([, , local]) => local);
  const body = text
    .replaceAll(imports, (_, names: string, path: string) => `const {${names}} = ${variableOf(moduleNameOf(path))};`)
    .replaceAll(exports, "$1$2");
  // A module without exports is the entry module, which is not wrapped, so that it may use top-level await.
  if (exported.length === 0) return [...dependencies, body];
  return [...dependencies, `const ${variableOf(name)} = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();`];
}

const imports = /^import \{([^}]*)\} from "([^"]+)";$/gm;
const exports = /export ((?:async )?function\*? |const )(\w+)/g;

function moduleNameOf(path: string): string {
  return path.replace(/^\.\//, "").replace(/\.js$/, "");
}

function variableOf(name: string): string {
  return name === "marked" ? name : `$${name.replaceAll("-", "_")}`;
}
