import type { ContextValues } from "@connectrpc/connect";

/** What a request speaks. */
export type Protocol = "connect" | "grpc" | "grpc-web" | "rest";

/** The other end of the connection. */
export interface Peer {
  /** The IP address, as the socket tells it; empty when the socket is already gone. */
  readonly address: string;
  /** The TCP port; 0 when the socket is already gone. */
  readonly port: number;
}

/**
 * Reads request header fields by name, case-insensitively.
 *
 * As in Fetch's `Headers`: a field that was sent more than once is one value, joined by ", "; `null`
 * when it was not sent. A `Headers` object is one of these.
 */
export interface HeaderReader {
  get(name: string): string | null;
}

/** All that is known of a request before a byte of its body is read. */
export interface AdmitRequest {
  /** `/package.Service/Method` of the RPC that matched, or `undefined` when nothing did. */
  readonly procedure: string | undefined;
  readonly protocol: Protocol;
  readonly header: HeaderReader;
  readonly peer: Peer;
  /**
   * Stands for the connection: the same object for every request of it, and gone with it. For what may
   * be remembered as long as the connection lasts, in a WeakMap.
   */
  readonly connection: object;
  /** The values that the interceptors and the handler of this request will see. */
  readonly contextValues: ContextValues;
}

/**
 * Decides on a request by its headers alone; runs exactly once per request, before anything is
 * answered and before a byte of the body is read or decompressed.
 *
 * Returns to admit. Throws a `ConnectError` to refuse, whose metadata become response headers
 * (trailers in the gRPC protocols); anything else that is thrown is answered as `Internal`.
 */
export type Admit = (request: AdmitRequest) => void | Promise<void>;
