import { notParsed, parsed, type ParseResult } from "@plantstore/auth/inputs";

/**
 * Returns a text if nothing is wrapped around it: a file system would accept `plants.db` followed by a space, and open an
 * empty store of that name. A problem continues the sentence "PORT must …".
 */
export function unwrapped(text: string): ParseResult<string> {
  // Before white space, which it is for JavaScript.
  if (text.startsWith("\uFEFF")) return notParsed("begin without a byte order mark");
  if (text !== text.trim()) return notParsed("have no white space around it");
  return /^(["'`]).*\1$/s.test(text) ? notParsed("be written without quotes around it") : parsed(text);
}
