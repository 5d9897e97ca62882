import { projectFolder } from "../../protoport/tools/build/manifest.ts";
import { subjectsOf } from "./other-projects.ts";
import { pageFiles, pageTexts, sourceFiles, sourceTexts, testFiles, testTitles, toolFiles } from "./project-texts.ts";

/** A property that makes the project's texts hard to read when it is frequent. */
export interface Figure {
  readonly name: string;
  /** The property's frequency, as a percentage, a number per 100 words, or a number. */
  readonly value: number;
}

/** Maximum number of words in a test title. Readers read a longer title twice. */
const maxTitleWords = 12;

const referent = /^(?:such|these|those|it|the same)\b/i;
const colonOrSemicolon = /[:;](?=\s)/;
const finalPlaceholder = /(?:\$[a-z][\w.]*|%[sdijo#]|\$\{\})$/i;

const symbolOrFile = /[a-z][A-Z]|\w\(\)|\w[._/]\w|[A-Z]{2,}_/;

/** Returns the whole project's figures. */
export function wordingFigures(): Figure[] {
  const sources = [...sourceTexts([...sourceFiles(), ...toolFiles()], false), ...sourceTexts(testFiles(), true)];
  const comments = sources.filter(({ kind }) => kind === "comment").map(({ text }) => withoutCode(text));
  const titles = testTitles(testFiles()).map(({ text }) => text);
  const docs = pageTexts(pageFiles()).flatMap(({ kind, text }) => (kind === "docs" ? [text] : []));
  const subjects = subjectsOf(projectFolder, "").map(({ text }) => text);
  return [
    { name: '"of" per 100 words of comments', value: ofPer100Words(comments) },
    { name: '"of" per 100 words of test titles', value: ofPer100Words(titles) },
    { name: '"of" per 100 words of docs', value: ofPer100Words(docs) },
    { name: '"of" per 100 words of commit subjects', value: ofPer100Words(subjects) },
    {
      name: "% of commit subjects that name a symbol or a file",
      value: percentage(subjects, (subject) => symbolOrFile.test(subject)),
    },
    {
      name: "% of comment sentences with a colon or semicolon",
      value: percentage(comments, (text) => colonOrSemicolon.test(text)),
    },
    {
      name: `% of test titles above ${maxTitleWords} words`,
      value: percentage(titles, (title) => wordsOf(title).length > maxTitleWords),
    },
    {
      name: "% of test titles that end in a placeholder",
      value: percentage(titles, (title) => finalPlaceholder.test(title)),
    },
    {
      name: "comment sentences that begin with such, these, those, it or the same",
      value: comments.filter((text) => referent.test(text)).length,
    },
  ];
}

/** Returns a text's words. Punctuation alone is not a word. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => /[a-z0-9]/i.test(word));
}

function ofPer100Words(texts: readonly string[]): number {
  const words = texts.flatMap(wordsOf);
  return (100 * words.filter((word) => word.toLowerCase() === "of").length) / Math.max(1, words.length);
}

function percentage(texts: readonly string[], condition: (text: string) => boolean): number {
  return (100 * texts.filter(condition).length) / Math.max(1, texts.length);
}

function withoutCode(text: string): string {
  return text.replaceAll(/`[^`]*`/g, "code");
}
