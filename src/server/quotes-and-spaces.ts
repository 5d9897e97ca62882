import { withProblems, parsed, type ParseResult } from "@protoport/auth/inputs";

/**
 * Returns the text, or a problem ("PORT must …") if the text has a byte order mark, surrounding white space or quotes.
 * For example, `plants.db` with a trailing space would create an empty store.
 */
export function refuseQuotesAndSpaces(text: string): ParseResult<string> {
  // Checks the byte order mark first, because `trim` also removes a byte order mark.
  if (text.startsWith("\uFEFF")) return withProblems("not begin with a byte order mark");
  if (text !== text.trim()) return withProblems("not begin or end with white space");
  return /^(["'`]).*\1$/s.test(text) ? withProblems("not be enclosed in quotes") : parsed(text);
}
