/** A request's decompressed body, or one stream message. */
export interface RestBody {
  /** The header `Content-Type`, or `null` if there is none. */
  readonly contentType: string | null;
  /** Empty if there is none. */
  readonly body: Uint8Array;
}

/** The parts of a URL that set fields. */
export interface RequestUrl {
  /** The variable values in the path template, from the route table. */
  readonly captures: readonly string[];
  /** The raw string after the question mark, or `""` if there is none. */
  readonly query: string;
}

/** The parts of a request that a binding reads. */
export interface RestRequest extends RestBody, RequestUrl {}
