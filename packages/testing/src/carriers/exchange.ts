import { type AddressInfo, connect, type Socket } from "node:net";

/** Which HTTP carries a request: HTTP/1.1, or HTTP/2 with prior knowledge. */
export type HttpVersion = "1.1" | "2";

/** One header or trailer field as it stands on the wire, the name in lower case. */
export type Field = readonly [name: string, value: string];

/** A request as a client writes it; nothing is added but what the HTTP version demands. */
export interface HttpRequest {
  readonly httpMethod: string;
  /** The request target, sent as it is. */
  readonly path: string;
  readonly header: readonly Field[];
  /** Sent with a `content-length` on HTTP/1.1, unless the header says otherwise. Without it, no body at all. */
  readonly body?: Uint8Array;
}

/** An answer as it came over the wire, whole. */
export interface HttpAnswer {
  readonly httpStatus: number;
  /** In the order they came; on HTTP/2 without the pseudo-header. */
  readonly header: readonly Field[];
  readonly trailer: readonly Field[];
  readonly body: Buffer;
}

/** Where a server under test listens: an IP address and a port, or the path of a Unix socket. */
export type Address = Pick<AddressInfo, "address" | "port">;

/** Opens a connection to a server under test. */
export function openSocket({ address, port }: Address): Socket {
  const place = isPath(address) ? { path: address } : { host: address, port, noDelay: true };
  return connect({ ...place, allowHalfOpen: true });
}

/** The authority of requests to a server under test. */
export function authorityOf({ address, port }: Address): string {
  return isPath(address) ? "localhost" : `${address}:${String(port)}`;
}

function isPath(address: string): boolean {
  return address.startsWith("/");
}

/** All values of a field joined by ", ", or `undefined` when it did not come. `name` is in lower case. */
export function fieldValue(fields: readonly Field[], name: string): string | undefined {
  const values = fields.filter((field) => field[0] === name).map((field) => field[1]);
  return values.length === 0 ? undefined : values.join(", ");
}

/** Node's flat list of names and values, paired. */
export function fieldsOf(rawHeader: readonly string[]): Field[] {
  return Array.from({ length: rawHeader.length / 2 }, (_, at) => [
    (rawHeader[2 * at] ?? "").toLowerCase(),
    rawHeader[2 * at + 1] ?? "",
  ]);
}

/** The fields by which HTTP frames an answer, and what node adds to it. */
export const framing: ReadonlySet<string> = new Set([
  "date",
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
  "trailer",
]);
