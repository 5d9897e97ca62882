import { notParsed, parsed, type ParseResult } from "@plantstore/auth/inputs";

/**
 * Returns a text, or a problem if it has a byte order mark, white space or quotes around it: a file system would accept
 * `plants.db` followed by a space, and create an empty store. A problem continues the sentence "PORT must …".
 */
export function unwrapped(text: string): ParseResult<string> {
  // Before the check for white space, which includes the byte order mark.
  if (text.startsWith("\uFEFF")) return notParsed("not begin with a byte order mark");
  if (text !== text.trim()) return notParsed("not begin or end with white space");
  return /^(["'`]).*\1$/s.test(text) ? notParsed("not be enclosed in quotes") : parsed(text);
}
