import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../protoport/tools/build/manifest.ts";
import { lineTextsOf, pageTextsOf, type Text, textsOf, titlesOf } from "./texts-of.ts";

/** A text with its file, relative to the project's folder. */
export interface PlacedText extends Text {
  readonly file: string;
}

/** The page that lists the project's terms. */
export const termsPage = "tools/wording/terms.md";

/** Returns a project file's contents. */
export function readProjectFile(file: string): string {
  return readFileSync(join(projectFolder, file), "utf8");
}

function isExcluded(name: string): boolean {
  return /(?:^|\/)(?:node_modules|gen|dist)$/.test(name);
}

function filesOf(...patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: projectFolder, exclude: isExcluded }).toSorted();
}

/** Returns the source files of the plant store and the packages. */
export function sourceFiles(): string[] {
  return filesOf("src/**/*.ts", "protoport/!(testing)/src/**/*.ts", "protoport/conformance/runner/**/*.ts");
}

/** Returns the files with tools and benchmarks. */
export function toolFiles(): string[] {
  return filesOf("tools/**/*.ts", "bench/**/*.ts");
}

/** Returns the test files and the files that they share. */
export function testFiles(): string[] {
  return filesOf("test/**/*.ts", "protoport/*/test/**/*.ts", "protoport/testing/src/**/*.ts");
}

/** Returns the documentation's pages. */
export function pageFiles(): string[] {
  return filesOf("*.md", "docs/**/*.md", "deploy/**/*.md", "bench/*.md", "protoport/**/README.md", "src/README.md");
}

/**
 * Returns the other files that people read, such as definitions, manifests, test cases, examples and programs in other
 * languages.
 */
export function otherFiles(): string[] {
  return filesOf(
    "**/*.proto",
    "**/package.json",
    "protoport/conformance/cases/*.jsonl",
    "examples/**/*.{ts,mts,js,go,java,py,rs,sh}",
    "deploy/**/*.{conf,ini,json,service,sh,yaml,yml}",
    "{test,packages,bench}/**/*.{go,java,py,rs,sh,sql}",
    ".ci/*",
    ".github/**/*.yml",
  );
}

/** Returns the lines in files. @param filter - skips files that it does not match */
export function lineTexts(files: readonly string[], filter: RegExp): PlacedText[] {
  return textsIn(files, filter, lineTextsOf);
}

/**
 * Returns the texts of source files.
 *
 * @param isTest - whether the files' strings are test names instead of messages
 * @param filter - skips files that it does not match
 */
export function sourceTexts(files: readonly string[], isTest: boolean, filter: RegExp = /^/): PlacedText[] {
  return textsIn(files, filter, (content) => textsOf(content, isTest));
}

/** Returns the test titles, each without its groups' titles. */
export function testTitles(files: readonly string[]): PlacedText[] {
  return textsIn(files, /^/, titlesOf);
}

/** Returns the page texts. @param filter - skips files that it does not match */
export function pageTexts(files: readonly string[], filter: RegExp = /^/): PlacedText[] {
  return textsIn(files, filter, pageTextsOf);
}

function textsIn(files: readonly string[], filter: RegExp, read: (content: string) => Text[]): PlacedText[] {
  return files.flatMap((file) => {
    const content = readProjectFile(file);
    return filter.test(content) ? read(content).map((text) => ({ file, ...text })) : [];
  });
}
