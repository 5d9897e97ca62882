/**
 * Returns an ErrorResponse or NoticeResponse from a PostgreSQL server
 * (postgresql.org/docs/current/protocol-error-fields.html).
 *
 * @param fields - each is a letter and its value, terminated by a zero byte; another zero byte ends the list
 */
export function messageOf(type: "E" | "N", fields: string): Buffer {
  const message = Buffer.from(`${type}\0\0\0\0${fields}`);
  message.writeInt32BE(4 + fields.length, 1);
  return message;
}

/** Returns an ErrorResponse with these fields. */
export const errorMessage = (fields: string): Buffer => messageOf("E", fields);

/** The ReadyForQuery that follows a response outside a transaction. */
export const readyForQuery: Buffer = Buffer.from("Z\0\0\0\x05I");
