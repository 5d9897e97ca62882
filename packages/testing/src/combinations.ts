/** Whether tests run all combinations, as in the suite `combinations`. */
const areAllTested = process.env["TEST_COMBINATIONS"] === "all";

/**
 * Returns the rows of a table that are tested in one of several ways, such as over one of several protocols. In `npm
 * test`, each row is tested in a single way. The suite `combinations` tests each row in every way.
 */
export function rowsFor<Row, Way>(way: Way, ways: readonly Way[], rows: readonly Row[]): readonly Row[] {
  return areAllTested ? rows : rows.filter((_, at) => at % ways.length === ways.indexOf(way));
}
