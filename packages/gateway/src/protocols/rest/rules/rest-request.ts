/** The whole body of a request, or a message of a stream, with content codings undone. */
export interface RequestBody {
  /** The value of the header `Content-Type`; `null` when there is none. */
  readonly contentType: string | null;
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/** The parts of a request's URL that set fields. */
export interface RequestUrl {
  /** The values of the path template's variables, from the route table. */
  readonly captures: readonly string[];
  /** The raw text after the question mark; `""` when there is none. */
  readonly query: string;
}

/** The parts of a request that a binding reads. */
export interface RestRequest extends RequestBody, RequestUrl {}
