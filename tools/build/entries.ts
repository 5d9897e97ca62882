import { copyFileSync, cpSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

// A package's own code is in lib/. Beside it, node/ has what node imports and requires instead: files that check what is
// installed and then load those of lib/, with types for CommonJS.

/** An entry of a package, as it is built. */
export interface Entry {
  /** Its path in `lib/` and `node/`, without an ending. */
  readonly path: string;
  /** The names of its values. */
  readonly names: readonly string[];
}

/** Writes the folder `node/` of a package: its entries, by `import` and by `require`, and their types for CommonJS. */
export function writeNodeEntries(built: string, entries: readonly Entry[]): void {
  const folder = join(built, "node");
  for (const { path, names } of entries) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    const from = (to: string): string => toSpecifier(relative(dirname(file), join(built, to)));
    const load = `require("${from("node/requirements.js")}");\nmodule.exports = require("${from(`lib/${path}.js`)}");\n`;
    writeFileSync(`${file}.js`, `"use strict";\n${load}`);
    // By `import` throughout: tsx makes CommonJS of what is required, which would load a second copy of the peers.
    const imported = `await import("${from(`lib/${path}.js`)}")`;
    const check = `import "${from("node/requirements.js")}";\n`;
    writeFileSync(`${file}.mjs`, `${check}export const { ${names.join(", ")} } = ${imported};\n`);
  }
  copyFileSync(join(import.meta.dirname, "requirements.cjs"), join(folder, "requirements.js"));
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');
  for (const file of globSync("**/*.d.ts", { cwd: join(built, "lib") })) {
    cpSync(join(built, "lib", file), join(folder, file));
  }
}

/** Writes the commands of a package into its folder `node/`, where they first check what is installed. */
export function writeNodeCommands(built: string, paths: readonly string[]): void {
  for (const path of paths) {
    const file = join(built, "node", `${path}.js`);
    mkdirSync(dirname(file), { recursive: true });
    const from = (to: string): string => toSpecifier(relative(dirname(file), join(built, to)));
    const checked = `try {
  require("${from("node/requirements.js")}");
  import("${from(`lib/${path}.js`)}");
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}`;
    writeFileSync(file, `#!/usr/bin/env node\n"use strict";\n${checked}\n`);
  }
}

function toSpecifier(path: string): string {
  return path.startsWith(".") ? path : `./${path}`;
}
