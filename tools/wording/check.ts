import { type Phrase, phraseFinder, phrasesOf, roughPattern } from "./phrases.ts";
import {
  lineTexts,
  otherFiles,
  pageFiles,
  pageTexts,
  readProjectFile,
  sourceFiles,
  sourceTexts,
  termsPage,
  testFiles,
  toolFiles,
} from "./project-texts.ts";

/** Returns the phrases that the page of terms advises against. */
export function discouragedPhrases(): Phrase[] {
  return phrasesOf(readProjectFile(termsPage));
}

/**
 * Returns a line for each use of a discouraged phrase, with file, line, phrase and replacement. Checks messages,
 * comments, declared names, test names, pages, and all lines in other files.
 */
export function wordingWarnings(phrases: readonly Phrase[]): string[] {
  const filter = roughPattern(phrases);
  const find = phraseFinder(phrases);
  return [
    ...sourceTexts([...sourceFiles(), ...toolFiles()], false, filter),
    ...sourceTexts(testFiles(), true, filter),
    ...pageTexts(pageFiles(), filter),
    ...lineTexts(otherFiles(), filter),
  ].flatMap(({ file, ...text }) =>
    find(text).map(
      ({ phrase }) =>
        `${file}:${text.line}: ${text.kind} "${text.text}": write "${phrase.replacement}" instead of "${phrase.phrase}"`,
    ),
  );
}
