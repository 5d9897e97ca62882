/**
 * Returns the name that is most similar to a misspelled one; `undefined` if none is similar enough.
 *
 * @param lettersPerEdit - one edit is allowed for this many letters of the longer name, two for twice as many, and so
 * on
 */
export function nearestName(misspelled: string, names: readonly string[], lettersPerEdit = 3): string | undefined {
  const ranked = names.map((name) => ({ name, edits: editsBetween(misspelled, name) }));
  const [nearest] = ranked.toSorted((one, other) => one.edits - other.edits);
  if (nearest === undefined) return undefined;
  const letters = Math.max(misspelled.length, nearest.name.length);
  if (nearest.edits > letters / lettersPerEdit) return undefined;
  return nearest.name;
}

/** A name that is most likely a misspelling of another. */
interface MisspelledName {
  readonly name: string;
  readonly suggestion: string;
}

/**
 * Finds a name that is most likely a misspelling: it is unknown, but similar to a known name that is missing. Other
 * unknown names are allowed.
 *
 * @param names - the names of an object's members
 * @param known - the known names; these are never misspelled
 * @param missing - the known names that the object lacks
 * @param lettersPerEdit - as in {@link nearestName}
 */
export function findMisspelled(
  names: Iterable<string>,
  known: readonly string[],
  missing: readonly string[],
  lettersPerEdit?: number,
): MisspelledName | undefined {
  for (const name of names) {
    const suggestion = known.includes(name) ? undefined : nearestName(name, missing, lettersPerEdit);
    if (suggestion !== undefined) return { name, suggestion };
  }
  return undefined;
}

// Longer than any known name. Limits the work, which grows with the square of the length.
// equivalent mutant: one letter more or less changes no result.
const comparedLengthMax = 64;

/** Returns the Levenshtein distance; every letter beyond {@link comparedLengthMax} counts as an edit. */
function editsBetween(one: string, other: string): number {
  const from = lettersOf(one);
  const to = lettersOf(other);
  let row = [0, ...to.map((_, column) => column + 1)];
  for (const [line, letter] of from.entries()) row = nextRow(row, line + 1, letter, to);
  return (row.at(-1) ?? 0) + (one.length - from.length) + (other.length - to.length);
}

function lettersOf(name: string): readonly string[] {
  return name.slice(0, comparedLengthMax).split("");
}

function nextRow(above: readonly number[], first: number, letter: string, to: readonly string[]): number[] {
  const row = [first];
  for (const [column, target] of to.entries()) {
    const replaced = (above[column] ?? 0) + (letter === target ? 0 : 1);
    row.push(Math.min(replaced, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
  }
  return row;
}
