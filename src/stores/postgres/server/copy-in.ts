import type { Connection, Submittable } from "pg";

// What node-postgres has for the protocol of COPY, and its types lack.
declare module "pg" {
  interface Connection {
    sendCopyFromChunk(bytes: Buffer): void;
    endCopyFrom(): void;
  }
}

/**
 * A `COPY … FROM STDIN` of bytes that are all there (postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY), in
 * the form in which node-postgres runs it.
 */
export class CopyIn implements Submittable {
  readonly #text: string;
  readonly #bytes: Buffer;
  readonly #ended = Promise.withResolvers<number>();
  #rows = 0;

  constructor(text: string, bytes: Buffer) {
    this.#text = text;
    this.#bytes = bytes;
  }

  /** Resolves to how many rows the server has taken; a trigger may have dropped others. */
  get ended(): Promise<number> {
    return this.#ended.promise;
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
    this.#ended.resolve(this.#rows);
  }

  /** Called before the server is ready for another query, or when the connection is lost. */
  handleError(fault: unknown): void {
    this.#ended.reject(fault);
  }
}
