import { type Client, type Connection, Query } from "pg";

// node-postgres has these methods for the COPY protocol, but its types lack the methods.
declare module "pg" {
  interface Connection {
    sendCopyFromChunk(bytes: Buffer): void;
    endCopyFrom(): void;
  }
}

/**
 * Runs a `COPY … FROM STDIN` (postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY). Resolves to the number of
 * stored rows. Triggers may have dropped rows.
 */
export function copyIn(client: Client, text: string, bytes: Buffer): Promise<number> {
  const query = Object.assign(new Query(text), {
    handleCopyInResponse(connection: Connection): void {
      connection.sendCopyFromChunk(bytes);
      connection.endCopyFrom();
    },
  });
  return new Promise((resolve, reject) => {
    query.on("end", ({ rowCount }) => resolve(rowCount ?? 0)).on("error", reject);
    client.query(query);
  });
}
