import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settingTable } from "../proxy/src/settings/index.ts";
import { projectFolder } from "./build/manifest.ts";

// Prints protoport/docs/reference/proxy-configuration.md with its current text and a new settings table. `npm run generate`
// writes the page.

/** The page line after which the table follows. */
const marker = "<!-- The rest is generated";

const page = readFileSync(join(projectFolder, "protoport/docs/reference/proxy-configuration.md"), "utf8");
const end = page.indexOf("\n", page.indexOf(marker));
process.stdout.write(`${page.slice(0, end)}\n\n${settingTable().join("\n")}\n`);
