import { accessSync, constants } from "node:fs";

/** What came of reading one setting: its value, or what it must be instead ("must be …"). */
export type Reading<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "bad"; readonly must: string };

/** One thing an operator can set; docs/configuration.md has a row for each. */
export interface Setting<T> {
  /** The environment variable. */
  readonly variable: string;
  /** The flag without its dashes; a setting whose value is a secret has none, as process lists show flags. */
  readonly flag?: string;
  /** What it decides, in a few words, for `--help`. */
  readonly about: string;
  /** The text that stands in when neither variable nor flag is given. */
  readonly fallback?: string;
  /** Whether the server cannot do without it; such a setting has no fallback. */
  readonly required?: boolean;
  /** Whether the value must never be repeated in a message. */
  readonly secret?: boolean;
  readonly read: (text: string) => Reading<T>;
}

/** Says what the text means. */
export function value<T>(meaning: T): Reading<T> {
  return { kind: "value", value: meaning };
}

/** Says what the text must be instead; continues the sentence "PORT must …". */
export function bad(must: string): Reading<never> {
  return { kind: "bad", must };
}

/** Returns a reader of whole numbers in decimal, both ends included. */
export function wholeNumber(least: number, most: number, unit: string = ""): (text: string) => Reading<number> {
  const must = `be a whole number${unit && ` of ${unit}`} from ${least} to ${most}`;
  return (text) => {
    // Number() alone takes "", " 7", "0x7" and "1e3".
    const number = /^(0|[1-9][0-9]*)$/.test(text) ? Number(text) : Number.NaN;
    return number >= least && number <= most ? value(number) : bad(must);
  };
}

/** Returns a reader of one word out of a list. */
export function oneOf<T extends string>(words: readonly T[]): (text: string) => Reading<T> {
  return (text) => {
    const word = words.find((candidate) => candidate === text);
    return word === undefined ? bad(`be one of ${words.join(", ")}`) : value(word);
  };
}

/** Reads the path of a file that must be there and readable when the server starts. */
export function readableFile(text: string): Reading<string> {
  try {
    accessSync(text, constants.R_OK);
    return value(text);
  } catch {
    return bad("name a file that can be read");
  }
}
