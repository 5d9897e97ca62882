/**
 * Returns a text for models: without control characters and invisible characters, which can hide instructions from the
 * people who review a tool, and cut to `lengthMax` characters.
 *
 * Descriptions come from definitions, which may come from another server. Removing characters does not make their
 * content trustworthy.
 */
export function cleanText(text: string, lengthMax: number): string {
  const clean = text.toWellFormed().replaceAll(invisible, "");
  return clean.length > lengthMax ? `${clean.slice(0, lengthMax).toWellFormed()}…` : clean;
}

// Control characters except tabs and line feeds; format characters, such as direction changes and the Unicode tags;
// private and unassigned ones; variation selectors.
const invisible = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{FE00}-\u{FE0F}\u{E0100}-\u{E01EF}]/gu;
