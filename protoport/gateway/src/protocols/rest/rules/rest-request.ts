/** A request's decompressed body, or one message in a stream. */
export interface RestBody {
  /** The header `Content-Type`, or `null` if there is none. */
  readonly contentType: string | null;
  /** The bytes. A request without a body has no bytes. */
  readonly body: Uint8Array;
}

/** The path variables and the query of a URL, which set fields. */
export interface RequestUrl {
  /** The values of the path template's variables, from the route table. */
  readonly captures: readonly string[];
  /** The encoded string after the question mark, or `""` if there is none. */
  readonly query: string;
}

/** The URL and body of a request that a binding reads. */
export interface RestRequest extends RestBody, RequestUrl {}
