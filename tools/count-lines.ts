import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// `npm run count-lines`: writes how many lines each room has into docs/architecture.md, to the nearest ten.
// test/architecture.test.ts fails when that is due.

const root = join(import.meta.dirname, "..");
const page = join(root, "docs/architecture.md");
const row = /^(\| `([a-z0-9/-]+)\/` \|.*\| )\d+( \|)$/gm;

const text = readFileSync(page, "utf8");
const rooms = [...text.matchAll(row)].map(([, , room = ""]) => `${room}/`);

const counted = text.replace(row, (_, before: string, room: string, after: string) => {
  return `${before}${Math.round(linesOf(`${room}/`) / 10) * 10}${after}`;
});
writeFileSync(page, counted);

/** Counts the lines of a room, without those of the rooms inside it. */
function linesOf(room: string): number {
  const inner = rooms.filter((other) => other !== room && other.startsWith(room));
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
    (name) =>
      name.endsWith(".ts") &&
      !name.includes("/gen/") &&
      name.startsWith(room) &&
      !inner.some((other) => name.startsWith(other)),
  );
  return files.reduce((sum, name) => sum + readFileSync(join(root, "src", name), "utf8").split("\n").length - 1, 0);
}
