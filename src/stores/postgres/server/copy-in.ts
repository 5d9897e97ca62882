import type { Connection, Submittable } from "pg";

// node-postgres has these methods for the COPY protocol, but its types lack the methods.
declare module "pg" {
  interface Connection {
    sendCopyFromChunk(bytes: Buffer): void;
    endCopyFrom(): void;
  }
}

/** A `COPY … FROM STDIN` as a node-postgres query (postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY). */
export class CopyIn implements Submittable {
  readonly #text: string;
  readonly #bytes: Buffer;
  readonly #done = Promise.withResolvers<number>();
  #rows = 0;

  constructor(text: string, bytes: Buffer) {
    this.#text = text;
    this.#bytes = bytes;
  }

  /** Resolves to the number of stored rows. Triggers may have dropped rows. */
  get done(): Promise<number> {
    return this.#done.promise;
  }

  submit(connection: Connection): void {
    connection.query(this.#text);
  }

  handleCopyInResponse(connection: Connection): void {
    connection.sendCopyFromChunk(this.#bytes);
    connection.endCopyFrom();
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#rows = Number(text.replace("COPY ", ""));
  }

  handleReadyForQuery(): void {
    this.#done.resolve(this.#rows);
  }

  handleError(fault: unknown): void {
    this.#done.reject(fault);
  }
}
