/** Maximum number of rows per chunk. A chunk has a few hundred kilobytes, so the overhead per row is negligible. */
export const chunkRowsMax = 10_000;

/** Groups rows into chunks, so that a stream with millions of rows does not take one asynchronous step per row. */
export function* inChunks<Row, Item>(rows: Iterable<Row>, toItem: (row: Row) => Item): Generator<readonly Item[]> {
  let chunk: Item[] = [];
  for (const row of rows) {
    chunk.push(toItem(row));
    if (chunk.length < chunkRowsMax) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
