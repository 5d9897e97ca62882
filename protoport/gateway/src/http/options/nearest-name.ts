/**
 * Returns the name most similar to a misspelled name, ignoring case, or else the only name that it abbreviates.
 *
 * @param lettersPerEdit - how many letters the longer name must have for each edit
 */
export function nearestName(misspelled: string, names: readonly string[], lettersPerEdit = 3): string | undefined {
  return similarName(misspelled, names, lettersPerEdit) ?? abbreviatedName(misspelled, names);
}

function similarName(misspelled: string, names: readonly string[], lettersPerEdit: number): string | undefined {
  const ranked = names.map((name) => ({ name, edits: editsBetween(misspelled, name) }));
  const [nearest] = ranked.toSorted((one, other) => one.edits - other.edits);
  if (nearest === undefined) return undefined;
  const letters = Math.max(misspelled.length, nearest.name.length);
  if (nearest.edits > letters / lettersPerEdit) return undefined;
  return nearest.name;
}

/** Minimum number of letters in an abbreviation. Shorter strings may be the start of a name by chance. */
const abbreviationLengthMin = 3;

function abbreviatedName(given: string, names: readonly string[]): string | undefined {
  if (given.length < abbreviationLengthMin) return undefined;
  const [name, ...others] = names.filter((each) => each.toLowerCase().startsWith(given.toLowerCase()));
  return others.length === 0 ? name : undefined;
}

interface MisspelledName {
  readonly name: string;
  readonly suggestion: string;
}

/**
 * Finds an unknown name that is similar to a missing known name, and so most likely a misspelling. Other unknown names
 * are allowed.
 *
 * @param known - the known names, which are never misspellings
 * @param missing - the known names that the object lacks
 */
export function findMisspelled(
  names: Iterable<string>,
  known: readonly string[],
  missing: readonly string[],
  lettersPerEdit = 3,
): MisspelledName | undefined {
  for (const name of names) {
    const suggestion = known.includes(name) ? undefined : similarName(name, missing, lettersPerEdit);
    if (suggestion !== undefined) return { name, suggestion };
  }
  return undefined;
}

// Maximum number of letters that are compared. The CPU time grows with the square of this number.
// equivalent mutant: a limit of 63 or 65 letters changes no result.
const comparedLengthMax = 64;

/** Returns the number of letters at the start of two names that are equal, ignoring case. */
function sharedLength(one: string, other: string): number {
  const letters = other.toLowerCase();
  const different = one
    .toLowerCase()
    .split("")
    .findIndex((letter, at) => letter !== letters[at]);
  return different < 0 ? one.length : different;
}

/**
 * Returns the number of edits between two names (optimal string alignment). An edit adds, removes or replaces a letter,
 * or swaps two neighbours. After the shared start, letters beyond {@link comparedLengthMax} count as edits.
 */
function editsBetween(one: string, other: string): number {
  const shared = sharedLength(one, other);
  const [from, to] = [lettersOf(one.slice(shared)), lettersOf(other.slice(shared))];
  const rows = [[0, ...to.map((_, column) => column + 1)]];
  for (const line of from.keys()) rows.push(nextRow(rows, line, from, to));
  const uncompared = one.length + other.length - 2 * shared - from.length - to.length;
  return (rows.at(-1)?.at(-1) ?? 0) + uncompared;
}

function lettersOf(name: string): readonly string[] {
  return name.slice(0, comparedLengthMax).toLowerCase().split("");
}

function nextRow(
  rows: readonly (readonly number[])[],
  line: number,
  from: readonly string[],
  to: readonly string[],
): number[] {
  const [beforeAbove = [], above = []] = [rows[line - 1], rows[line]];
  const row = [line + 1];
  for (const [column, letter] of to.entries()) {
    const replaced = (above[column] ?? 0) + (from[line] === letter ? 0 : 1);
    const isSwapped = from[line] === to[column - 1] && from[line - 1] === letter;
    const swapped = isSwapped ? (beforeAbove[column - 1] ?? 0) + 1 : replaced;
    row.push(Math.min(replaced, swapped, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
  }
  return row;
}
