import type { Http1Connection, Http1RequestHead, RequestReceiver } from "./http1/index.ts";
import {
  authorityOf,
  BaseExchange,
  clientGoneProblem,
  type HeaderFields,
  type HttpProblem,
  type Peer,
  type RequestBody,
  requireFields,
} from "../http/index.ts";
import { AwaitedBody } from "../http/node-entry.ts";
import { dateFields } from "./date-fields.ts";
import { peerOf } from "./peer.ts";

/** A request and its response on one of the engine's HTTP/1.1 connections. */
export class SocketHttp1Exchange extends BaseExchange implements RequestReceiver {
  readonly httpVersion: "1.0" | "1.1";
  readonly connection: object;
  readonly body: RequestBody | undefined;
  readonly #connection: Http1Connection;
  readonly #refuse: (exchange: SocketHttp1Exchange, problem: HttpProblem) => void;

  /** @param target - the request target in origin form */
  constructor(
    head: Http1RequestHead,
    target: string,
    connection: Http1Connection,
    refuse: (exchange: SocketHttp1Exchange, problem: HttpProblem) => void,
  ) {
    const { httpMethod, section } = head;
    const { fields, common, httpVersion } = section;
    const scheme = "encrypted" in connection.socket ? "https://" : "http://";
    // A request target that is an absolute URL contains the authority.
    const authority = head.target === target ? (common.host ?? "") : authorityOf(head.target, common.host);
    super({ httpMethod, target, url: scheme + authority + target, fields, common });
    this.httpVersion = httpVersion;
    this.connection = connection.key;
    this.#connection = connection;
    this.#refuse = refuse;
    const { bodyBytes } = section;
    this.body = bodyBytes === 0 ? undefined : new AwaitedBody(connection, bodyBytes === "chunked" ? 0 : bodyBytes);
    connection.receiver = this;
  }

  get isMounted(): boolean {
    return false;
  }

  get peer(): Peer {
    return peerOf(this.#connection.socket);
  }

  onRequestError(problem: HttpProblem): void {
    if (this.httpStatus === 0) this.#refuse(this, problem);
    // The response has started and cannot be replaced by an error.
    else this.#connection.destroy();
    this.abort(problem);
  }

  onDisconnect(): void {
    this.abort(clientGoneProblem());
  }

  protected sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    if (trailer === undefined) return this.#connection.respond(httpStatus, this.#withDate(fields), body);
    requireFields(trailer);
    this.sendHeader(httpStatus, fields);
    if (body !== undefined) this.sendPiece(body);
    this.sendEnd(trailer);
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#connection.begin(httpStatus, this.#withDate(fields));
  }

  protected sendPiece(piece: Uint8Array): boolean {
    return this.#connection.write(piece);
  }

  protected sendEnd(trailer: HeaderFields | undefined): void {
    this.#connection.end(trailer);
  }

  protected sendReset(): void {
    this.#connection.destroy();
  }

  #withDate(fields: HeaderFields): readonly HeaderFields[] {
    return [fields, dateFields(), this.addedFields];
  }
}
