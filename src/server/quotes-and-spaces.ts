import { notParsed, parsed, type ParseResult } from "@plantstore/auth/inputs";

/**
 * Returns a text, or a problem if it begins with a byte order mark, or has white space or quotes around it. Otherwise,
 * for example, `plants.db` with a trailing space would be a valid file name, and create an empty store. A problem
 * continues the sentence "PORT must …".
 */
export function refuseQuotesAndSpaces(text: string): ParseResult<string> {
  // Checked before white space, which includes the byte order mark.
  if (text.startsWith("\uFEFF")) return notParsed("not begin with a byte order mark");
  if (text !== text.trim()) return notParsed("not begin or end with white space");
  return /^(["'`]).*\1$/s.test(text) ? notParsed("not be enclosed in quotes") : parsed(text);
}
