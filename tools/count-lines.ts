import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// `npm run count-lines`: writes how many lines each room has into docs/architecture.md, to the nearest ten.
// test/architecture.test.ts tells when that is due.

const root = join(import.meta.dirname, "..");
const page = join(root, "docs/architecture.md");
const row = /^(\| `([a-z0-9/]+)\/` \|.*\| )\d+( \|)$/gm;

const counted = readFileSync(page, "utf8").replace(row, (_, before: string, room: string, after: string) => {
  return `${before}${Math.round(linesOf(room) / 10) * 10}${after}`;
});
writeFileSync(page, counted);

function linesOf(room: string): number {
  const folder = join(root, "src", room);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return files.reduce((sum, name) => sum + readFileSync(join(folder, name), "utf8").split("\n").length - 1, 0);
}
