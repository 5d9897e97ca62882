import { copyFileSync, cpSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

// A package's code is in lib/. Node imports and requires the files in node/ instead, which have types for CommonJS. The
// files check that the peers are installed, and then load the files in lib/.

/** A built entry of a package. */
export interface Entry {
  /** The entry's path in `lib/` and `node/`, without an extension. */
  readonly path: string;
  /** The names of the values that the entry exports. */
  readonly names: readonly string[];
  /** The packages that the entry loads immediately. */
  readonly packages: readonly string[];
}

/**
 * Writes a package's folder `node/`, with the entries for `import` and `require`, and their types for CommonJS.
 *
 * @param optionalPeers - the packages that only some entries need
 */
export function writeNodeEntries(built: string, entries: readonly Entry[], optionalPeers: readonly string[]): void {
  const folder = join(built, "node");
  for (const { path, names, packages } of entries) {
    const { file, requirements, code } = nodeFile(built, path);
    const needed = packages.filter((name) => optionalPeers.includes(name));
    const check = `require("${requirements}")${needed.map((name) => `.check("${name}")`).join("")};`;
    writeFileSync(`${file}.js`, `"use strict";\n${check}\nmodule.exports = require("${code}");\n`);
    // The file uses only `import`, because tsx converts required files to CommonJS, which would load a second copy of
    // the peers.
    const exported = `export const { ${names.join(", ")} } = await import("${code}");`;
    const checked = [
      `import requirements from "${requirements}";`,
      ...needed.map((name) => `requirements.check("${name}");`),
    ];
    writeFileSync(`${file}.mjs`, `${checked.join("\n")}\n${exported}\n`);
  }
  copyFileSync(join(import.meta.dirname, "requirements.cjs"), join(folder, "requirements.js"));
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');
  for (const file of globSync("**/*.d.ts", { cwd: join(built, "lib") })) {
    cpSync(join(built, "lib", file), join(folder, file));
  }
}

/** Writes a package's commands to its folder `node/`. The commands first check that the peers are installed. */
export function writeNodeCommands(built: string, paths: readonly string[]): void {
  for (const path of paths) {
    const { file, requirements, code } = nodeFile(built, path);
    const checked = `try {
  require("${requirements}");
  import("${code}");
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}`;
    writeFileSync(`${file}.js`, `#!/usr/bin/env node\n"use strict";\n${checked}\n`);
  }
}

/** Creates a file's folder in `node/`. Returns the file's path without its extension, and the files to load. */
function nodeFile(built: string, path: string): Readonly<Record<"file" | "requirements" | "code", string>> {
  const file = join(built, "node", path);
  mkdirSync(dirname(file), { recursive: true });
  const from = (to: string): string => relative(dirname(file), join(built, to)).replace(/^(?!\.)/, "./");
  return { file, requirements: from("node/requirements.js"), code: from(`lib/${path}.js`) };
}
