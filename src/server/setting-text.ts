import { notParsed, parsed, type ParseResult } from "@plantstore/auth/inputs";

/**
 * Returns a text if nothing is wrapped around it: a file system would accept `plants.db` followed by a space, and open an
 * empty store of that name. A problem continues the sentence "PORT must …".
 */
export function unwrapped(text: string): ParseResult<string> {
  // Before white space, which it is for JavaScript.
  if (text.startsWith("\uFEFF")) return notParsed("not begin with a byte order mark");
  if (text !== text.trim()) return notParsed("not begin or end with white space");
  return /^(["'`]).*\1$/s.test(text) ? notParsed("not be enclosed in quotes") : parsed(text);
}
