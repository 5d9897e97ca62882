// The binary format of COPY (PostgreSQL's documentation of COPY, "Binary Format"): a header with a signature, flags and
// the length of an extension; rows with a count of columns, and for each column its length and value; a trailer.
const signature = "PGCOPY\n\xff\r\n\0";
const headerBytes = signature.length + 8;
const rowBytes = 2 + 4 + 8;
const trailer = -1;

/**
 * Encodes rows of one `bigint` column for `COPY … FROM STDIN (FORMAT binary)`. Binary, so that the server need not
 * parse digits, and no value can be mistaken for an escape or the end of the data.
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
