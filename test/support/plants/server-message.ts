/**
 * Returns a CommandComplete, ErrorResponse or NoticeResponse from a PostgreSQL server
 * (postgresql.org/docs/current/protocol-message-formats.html).
 * @param fields - the tag of a CommandComplete, or else letters with their values. A zero byte ends each, and the list
 */
export function messageOf(type: "C" | "E" | "N", fields: string): Buffer {
  const message = Buffer.from(`${type}\0\0\0\0${fields}`);
  message.writeInt32BE(4 + fields.length, 1);
  return message;
}

export const errorMessage = (fields: string): Buffer => messageOf("E", fields);
/** The ReadyForQuery that follows a response outside a transaction. */
export const readyForQuery: Buffer = Buffer.from("Z\0\0\0\x05I");
