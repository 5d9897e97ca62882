/** A plain HTTP resource beside the RPCs, such as a probe or a page: GET, and HEAD by it. */
export interface Endpoint {
  /** The exact path, without the gateway's prefix. */
  readonly path: string;
  /** The path is one of the host, outside of the prefix, as `/.well-known/` paths are (RFC 8615). */
  readonly atRoot?: boolean;
  /** Answered without asking `admit`. */
  readonly open: boolean;
  answer(): EndpointAnswer;
}

/** What an {@link Endpoint} says. */
export interface EndpointAnswer {
  readonly httpStatus: number;
  /** Header fields, `content-type` among them; the length is added. */
  readonly header?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}
