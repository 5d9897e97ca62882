import { type AddressInfo, connect, type Socket } from "node:net";

/** A request's HTTP version: HTTP/1.1, or HTTP/2 with prior knowledge. */
export type HttpVersion = "1.1" | "2";
/** A header or trailer field as sent or received, with the name in lower case. */
export type Field = readonly [name: string, value: string];

/** A request to which only the fields that the HTTP version requires are added. */
export interface HttpRequest {
  readonly httpMethod: string;
  /** The request target, sent unchanged. */
  readonly path: string;
  readonly header: readonly Field[];
  /** The body, sent with `content-length` on HTTP/1.1 unless the header has framing fields. Default none. */
  readonly body?: Uint8Array;
}

/** A complete response as received. */
export interface HttpResponse {
  readonly httpStatus: number;
  /** The header fields in the order received. On HTTP/2, the pseudo-header field is omitted. */
  readonly header: readonly Field[];
  readonly trailer: readonly Field[];
  readonly body: Buffer;
}

/** The address of a server under test, which is an IP address and port, or a Unix socket's path. */
export type Address = Pick<AddressInfo, "address" | "port">;

export function openSocket({ address, port }: Address): Socket {
  const target = isPath(address) ? { path: address } : { host: address, port, noDelay: true };
  return connect({ ...target, allowHalfOpen: true });
}

/** Returns the authority for requests to a server under test. */
export const authorityOf = ({ address, port }: Address): string =>
  isPath(address) ? "localhost" : `${address}:${String(port)}`;

const isPath = (address: string): boolean => address.startsWith("/");

/** Returns a field's values joined by ", ", or `undefined` if the field is missing. @param name - in lower case */
export function fieldValue(fields: readonly Field[], name: string): string | undefined {
  const values = fields.filter((field) => field[0] === name).map((field) => field[1]);
  return values.length === 0 ? undefined : values.join(", ");
}

/** Converts node's flat list with names and values to pairs. */
export const fieldsOf = (rawHeader: readonly string[]): Field[] =>
  Array.from({ length: rawHeader.length / 2 }, (_, at) => [
    (rawHeader[2 * at] ?? "").toLowerCase(),
    rawHeader[2 * at + 1] ?? "",
  ]);

/** The fields that frame a response, and the fields that node adds. */
// oxfmt-ignore
export const framing: ReadonlySet<string> = new Set([
  "date", "connection", "keep-alive", "content-length", "transfer-encoding", "trailer",
]);

/** Appends small fields to a header, so that the header list has the size `bytes` (RFC 9113 §6.5.2). */
export function headerOfListBytes(header: readonly Field[], bytes: number): Field[] {
  const list = [...header];
  const remaining = (): number => bytes - list.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  while (remaining() >= 2 * smallFieldBytes) list.push(["a", "b"]);
  // The remaining bytes are enough for one field, but not for two.
  list.push(["a", "b".repeat(remaining() - smallFieldBytes + 1)]);
  return list;
}

const smallFieldBytes = 34;
