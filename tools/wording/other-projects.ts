import { spawnSync } from "node:child_process";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PlacedText } from "./project-texts.ts";
import { pageTextsOf, textsOf } from "./texts-of.ts";

const excluded = /(?:^|\/)(?:node_modules|dist|build|gen|generated|vendor|third_party|\.git)$/;
const testPath = /(?:^|[/._-])(?:tests?|spec|__tests__)(?=[/._-])/;

// Matches licences and directives. Their text is prescribed, so it would show little about a project's writing.
const licensesAndDirectives =
  /^(?:Copyright|@?licen[sc]e|Licensed under|You may obtain a copy|Unless required by applicable law|See the License|WITHOUT WARRANTIES|(?:biome|eslint|prettier|c8|v8|istanbul|deno|ts)-(?:ignore|disable|expect-error|enable))/i;

/** Number of latest commits whose subjects are read. */
const subjectsRead = 200;

/**
 * Returns the texts in other projects' checkouts, with the filters for this project. The texts are from TypeScript and
 * JavaScript, Markdown pages, and commit subjects.
 *
 * @param folder - has a folder for each project
 */
export function textsOfProjects(folder: string): PlacedText[] {
  const projects = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return projects.flatMap(({ name }) => textsOfProject(folder, name));
}

function textsOfProject(folder: string, name: string): PlacedText[] {
  const cwd = join(folder, name);
  const files = globSync(["**/*.{ts,mts,js,mjs}", "**/*.md"], { cwd, exclude: (path) => excluded.test(path) });
  const texts = files
    .filter((file) => !/\.d\.m?ts$|(?:^|\/)(?:CHANGELOG|LICENSE|CODE_OF_CONDUCT)/i.test(file))
    .flatMap((file) =>
      textsOfFile(readFileSync(join(cwd, file), "utf8"), file).map((text) => ({ ...text, file: join(name, file) })),
    );
  return [...texts.filter(({ text }) => !licensesAndDirectives.test(text)), ...subjectsOf(cwd, name)];
}

function textsOfFile(content: string, file: string): ReturnType<typeof textsOf> {
  if (file.endsWith(".md")) return pageTextsOf(content);
  try {
    return textsOf(content, testPath.test(file));
  } catch {
    // A file that cannot be parsed, such as JSX, Flow or a broken test file, has no texts.
    return [];
  }
}

/** Returns the subjects of a repository's latest commits. A folder without a repository has no subjects. */
export function subjectsOf(folder: string, name: string): PlacedText[] {
  const { stdout } = spawnSync("git", ["log", "--no-merges", "--format=%s", `-${subjectsRead}`], {
    cwd: folder,
    encoding: "utf8",
  });
  const subjects = (stdout ?? "").split("\n").filter((subject) => subject !== "");
  return subjects.map((text, index) => ({ kind: "commit subject", text, context: "", line: index + 1, file: name }));
}
