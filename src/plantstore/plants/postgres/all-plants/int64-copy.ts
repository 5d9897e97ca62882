// The binary format of COPY (postgresql.org/docs/current/sql-copy.html): a signature, flags and the length of an extension
// that there is not; for each row the number of its columns, and each of them after its length; and -1 at the end.
const signature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
const headerBytes = signature.length + 4 + 4;
const rowBytes = 2 + 4 + 8;
const trailerBytes = 2;

/** Encodes ids as the rows of a COPY in binary, each of which has one column of the type `bigint`. */
export function int64Copy(ids: BigInt64Array): Buffer {
  const bytes = Buffer.alloc(headerBytes + ids.length * rowBytes + trailerBytes);
  signature.copy(bytes);
  let at = headerBytes;
  for (const id of ids) {
    bytes.writeInt16BE(1, at);
    bytes.writeInt32BE(8, at + 2);
    bytes.writeBigInt64BE(id, at + 6);
    at += rowBytes;
  }
  bytes.writeInt16BE(-1, at);
  return bytes;
}
