import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectFolder } from "../build/manifest.ts";
import { drawTexts } from "./draw-texts.ts";
import { oneLine, type Text, textsOf } from "./texts-of.ts";

// Lists what people read in this project, to read it as they do:
//
//   npx node tools/wording/main.ts --messages     all messages of the program, similar ones next to each other
//   npx node tools/wording/main.ts --draw SEED    100 names, 100 sentences of comments and docs, 50 messages and
//                                                 50 names of tests, drawn by a seed

const { values } = parseArgs({ options: { messages: { type: "boolean" }, draw: { type: "string" } } });

/** A text with its file. */
interface PlacedText extends Text {
  readonly file: string;
}

function read(file: string): string {
  return readFileSync(join(projectFolder, file), "utf8");
}

function isForeign(name: string): boolean {
  return /(?:^|\/)(?:node_modules|gen|dist)$/.test(name);
}

function filesOf(...patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: projectFolder, exclude: isForeign }).toSorted();
}

function textsIn(files: readonly string[], isTest: boolean): PlacedText[] {
  return files.flatMap((file) => textsOf(read(file), isTest).map((text) => ({ file, ...text })));
}

/** Returns the sentences of the pages, without code, tables and headings. */
function docsSentences(): PlacedText[] {
  return filesOf("*.md", "docs/**/*.md", "packages/*/README.md").flatMap((file) =>
    read(file)
      .replaceAll(/^```[\s\S]*?^```|^[|#].*$/gm, "")
      .split(/\n{2,}|(?<=[.?!])\s/)
      .map(oneLine)
      .filter((sentence) => sentence.split(" ").length >= 3)
      .map((text) => ({ file, kind: "comment", text, callee: "", line: 0 })),
  );
}

function show({ file, line, callee, text }: PlacedText): string {
  return [text, callee, line === 0 ? file : `${file}:${line}`].filter((part) => part !== "").join("\t");
}

const sources = textsIn(filesOf("src/**/*.ts", "packages/!(testing)/src/**/*.ts"), false);
if (values.messages === true) {
  const messages = sources.filter(({ kind }) => kind === "message");
  const byCallee = messages.toSorted((a, b) => a.callee.localeCompare(b.callee) || a.text.localeCompare(b.text));
  for (const message of byCallee) console.log(show(message));
}
if (values.draw !== undefined) {
  const { draw: seed } = values;
  const testNames = textsIn(filesOf("test/**/*.test.ts", "packages/*/test/**/*.test.ts"), true);
  const groups = [
    { kind: "name", count: 100, from: sources },
    { kind: "comment", count: 100, from: [...sources, ...docsSentences()] },
    { kind: "message", count: 50, from: sources },
    { kind: "test name", count: 50, from: testNames },
  ] as const;
  for (const { kind, count, from } of groups) {
    console.log(`\n== ${kind}`);
    const ofKind = from.filter((text) => text.kind === kind);
    for (const text of drawTexts(ofKind, show, count, seed)) console.log(show(text));
  }
}
