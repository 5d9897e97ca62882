import type { Text } from "./texts-of.ts";

/** A phrase that this project does not use. */
export interface Phrase {
  readonly phrase: string;
  /** The text to write instead of the phrase. */
  readonly replacement: string;
  /** Longer phrases that contain the phrase, but are correct. */
  readonly exceptions: readonly string[];
}

/**
 * Returns the phrases that the page of terms advises against. They are the code spans in the last column of the page's
 * tables, up to the word "except". The first column has the replacement.
 */
export function phrasesOf(page: string): Phrase[] {
  return page.split("\n").flatMap((line) => {
    const cells =
      /^\|(.+)\|$/
        .exec(line)?.[1]
        ?.split("|")
        .map((cell) => cell.trim()) ?? [];
    const [phrases = "", exceptions = ""] = (cells.at(-1) ?? "").split(" except ");
    const replacement = (cells[0] ?? "").replaceAll("`", "");
    return codeSpansOf(phrases).map((phrase) => ({ phrase, replacement, exceptions: codeSpansOf(exceptions) }));
  });
}

function codeSpansOf(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => span);
}

/** A discouraged phrase that a text contains. */
export interface Offence {
  readonly text: Text;
  readonly phrase: Phrase;
}

/** Returns a function that finds phrases in texts. Names are compared word by word. */
export function phraseFinder(phrases: readonly Phrase[]): (text: Text) => Offence[] {
  const patterns = phrases.map((phrase) => {
    const exceptions = phrase.exceptions.length === 0 ? undefined : patternOf(phrase.exceptions, "gi");
    return { phrase, pattern: patternOf([phrase.phrase], "i"), exceptions };
  });
  return (text) => {
    const words = text.kind === "name" ? wordsOf(text.text) : text.text;
    return patterns
      .filter(({ pattern, exceptions }) => pattern.test(exceptions ? words.replaceAll(exceptions, "") : words))
      .map(({ phrase }) => ({ text, phrase }));
  };
}

/** Returns a pattern that all sources with a phrase match, also in names and across lines, for a quick first pass. */
export function roughPattern(phrases: readonly Phrase[]): RegExp {
  const patterns = phrases.map(({ phrase }) => {
    const words = phrase.split(" ").map((word) => {
      const [first, rest] = [word.slice(0, 1), word.slice(1)];
      // In a name, a word that starts with a capital letter may follow another word.
      return `(?:(?<![A-Za-z])${escapePattern(first.toLowerCase())}|${escapePattern(first.toUpperCase())})${escapePattern(rest)}(?![a-z])`;
    });
    return words.join("[\\s*/]*");
  });
  return new RegExp(patterns.join("|"));
}

function patternOf(phrases: readonly string[], flags: string): RegExp {
  return new RegExp(`(?<![\\w-])(?:${phrases.map(escapePattern).join("|")})(?![\\w-])`, flags);
}

function escapePattern(phrase: string): string {
  return phrase.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function wordsOf(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|_/g, " ").toLowerCase();
}
