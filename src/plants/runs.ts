/** The most rows in a run: its own cost is nothing beside theirs, and it takes a few hundred kilobytes. */
export const runMax = 10_000;

/** Cuts rows into runs, so that a stream of millions is not one step a row. */
export function* inRuns<Row, Item>(rows: Iterable<Row>, toItem: (row: Row) => Item): Generator<readonly Item[]> {
  let run: Item[] = [];
  for (const row of rows) {
    run.push(toItem(row));
    if (run.length < runMax) continue;
    yield run;
    run = [];
  }
  if (run.length > 0) yield run;
}
