/**
 * Removes control and invisible characters from a string that models read, and truncates the string to `lengthMax`
 * characters. Invisible characters can hide instructions from the people who review a tool. The returned text is still
 * untrusted.
 */
export function cleanText(text: string, lengthMax: number): string {
  const clean = text.toWellFormed().replaceAll(invisible, "");
  return clean.length > lengthMax ? `${clean.slice(0, lengthMax).toWellFormed()}…` : clean;
}

// Matches control characters except tabs and line feeds. Also matches format characters, such as direction changes and
// Unicode tags, private and unassigned characters, and variation selectors.
const invisible = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{FE00}-\u{FE0F}\u{E0100}-\u{E01EF}]/gu;
