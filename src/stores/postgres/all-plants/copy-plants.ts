import type { StoreSchema } from "../schema/store-schema.ts";
import type { Session } from "../server/session.ts";

// COPY's binary format (postgresql.org/docs/current/sql-copy.html): a header of signature, flags and extension length
// (0), rows of column count and each column's length and value, and a trailer of -1.
const signature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
const headerBytes = signature.length + 4 + 4;
const rowBytes = 2 + 4 + 8;
const trailerBytes = 2;

/** Adds plants with COPY, which fails if any plant exists. Returns the number of added plants. */
export async function copyPlants(session: Session, { plants }: StoreSchema, ids: BigInt64Array): Promise<number> {
  const bytes = Buffer.alloc(headerBytes + ids.length * rowBytes + trailerBytes);
  signature.copy(bytes);
  // Uses a DataView, because Buffer.writeBigInt64BE is ten times slower.
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let at = headerBytes;
  for (const id of ids) {
    view.setInt16(at, 1);
    view.setInt32(at + 2, 8);
    view.setBigInt64(at + 6, id);
    at += rowBytes;
  }
  view.setInt16(at, -1);
  return await session.copy(`COPY ${plants} (id) FROM STDIN (FORMAT binary)`, bytes);
}
