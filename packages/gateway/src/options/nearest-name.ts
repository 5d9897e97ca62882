/**
 * Returns the name that a misspelt one most likely stands for, or `undefined` when none is near: more than a third of
 * the letters would have to change.
 *
 * @param lettersPerEdit - the letters of a name for each one that may differ, if not three
 */
export function nearestName(misspelt: string, names: readonly string[], lettersPerEdit = 3): string | undefined {
  const ranked = names.map((name) => ({ name, edits: editsBetween(misspelt, name) }));
  const [nearest] = ranked.toSorted((one, other) => one.edits - other.edits);
  if (nearest === undefined) return undefined;
  const letters = Math.max(misspelt.length, nearest.name.length);
  if (nearest.edits > letters / lettersPerEdit) return undefined;
  return nearest.name;
}

/** A name that is most likely another one in another spelling. */
interface MisspelledName {
  readonly name: string;
  readonly meant: string;
}

/**
 * Finds a name of an object that may have names of its own, but most likely means one that it lacks.
 *
 * @param known - the names that are known: those among `names` are fine
 * @param missing - those of the known names that the object lacks
 * @param lettersPerEdit - as in {@link nearestName}
 */
export function findMisspelled(
  names: Iterable<string>,
  known: readonly string[],
  missing: readonly string[],
  lettersPerEdit?: number,
): MisspelledName | undefined {
  for (const name of names) {
    const meant = known.includes(name) ? undefined : nearestName(name, missing, lettersPerEdit);
    if (meant !== undefined) return { name, meant };
  }
  return undefined;
}

// A variable has no reason to be longer, and the work grows with the square.
// No test can tell: one letter more or less changes no guess.
const comparedLengthMax = 64;

/** Counts the letters to insert, to drop or to replace (Levenshtein); the rest of a very long name counts in full. */
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
