/** Whether tests run all combinations, as in the suite `long`. */
const areAllTested = process.env["TEST_COMBINATIONS"] === "all";
/** Returns a group's ways, such as protocols: two in `npm test`, all in the suite `long`. See {@link rowsFor}. */
export const waysFor = <Way>(ways: readonly Way[]): readonly Way[] => (areAllTested ? ways : ways.slice(0, 2));

/**
 * Returns the rows of a table that are tested in one of several ways, such as over one of several protocols. In `npm
 * test`, each row is tested in a single way. The suite `long` tests each row in every way.
 * @throws Error if `way` is not one of the ways, for which no row would be tested
 */
export function rowsFor<Row, Way>(way: Way, ways: readonly Way[], rows: readonly Row[]): readonly Row[] {
  const nth = ways.indexOf(way);
  if (nth < 0) throw new Error(`unknown way ${JSON.stringify(way)}`);
  return areAllTested ? rows : rows.filter((_, at) => at % ways.length === nth);
}
