// COPY's binary format (PostgreSQL's documentation of COPY, "Binary Format"): a header of a signature, flags
// and the length of an extension; each row a count of columns, and each column its length and its value; a trailer.
const signature = "PGCOPY\n\xff\r\n\0";
const headerBytes = signature.length + 8;
const rowBytes = 2 + 4 + 8;
const trailer = -1;

/**
 * Rows of one `bigint` column as `COPY … FROM STDIN (FORMAT binary)` reads them. Binary, so that the server
 * parses no digits, and nothing in a value can be read as an escape or as the end of the data.
 */
export function copyRowsOf(ids: readonly bigint[]): Uint8Array {
  const rows = Buffer.alloc(headerBytes + ids.length * rowBytes + 2);
  rows.write(signature, "latin1");
  let at = headerBytes;
  for (const id of ids) {
    rows.writeInt16BE(1, at);
    rows.writeInt32BE(8, at + 2);
    rows.writeBigInt64BE(id, at + 6);
    at += rowBytes;
  }
  rows.writeInt16BE(trailer, at);
  return rows;
}
