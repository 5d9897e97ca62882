import type { Http1Connection, Http1RequestHead, RequestReceiver } from "../../http1/index.ts";
import { authorityOf, goneAway, type HeaderFields, type HttpProblem, type Peer } from "../index.ts";
import { peerOf } from "./peer.ts";
import { dateFields, SocketExchange } from "./socket-exchange.ts";

/** An exchange carried by a connection of the gateway's own HTTP/1.1. */
export class OwnHttp1Exchange extends SocketExchange implements RequestReceiver {
  readonly #head: Http1RequestHead;
  readonly #connection: Http1Connection;
  readonly #refuse: (exchange: OwnHttp1Exchange, problem: HttpProblem) => void;

  /** @param target - the request target in origin form */
  constructor(
    head: Http1RequestHead,
    target: string,
    connection: Http1Connection,
    refuse: (exchange: OwnHttp1Exchange, problem: HttpProblem) => void,
  ) {
    const { httpMethod, section } = head;
    const { fields, common, bodyBytes } = section;
    const { socket } = connection;
    const scheme = "encrypted" in socket ? "https://" : "http://";
    // A target in absolute form, which differs from the target in origin form, names an authority of its own.
    const authority = head.target === target ? (common.host ?? "") : authorityOf(head.target, common.host);
    super(socket, { httpMethod, target, url: scheme + authority + target, fields, common, bodyEmpty: bodyBytes === 0 });
    this.#head = head;
    this.#connection = connection;
    this.#refuse = refuse;
    connection.receiver = this;
  }

  get peer(): Peer {
    return peerOf(this.#connection.socket);
  }

  get httpVersion(): "1.0" | "1.1" {
    return this.#head.section.httpVersion;
  }

  protected get bodyBytes(): number {
    const { bodyBytes } = this.#head.section;
    return bodyBytes === "chunked" ? 0 : bodyBytes;
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    if (this.gone || this.httpStatus !== 0) return;
    const lists = [fields, dateFields(), this.addedFields];
    this.complete();
    if (trailer === undefined) this.#connection.answer(httpStatus, lists, body);
    else this.#answerInPieces(httpStatus, lists, body, trailer);
    this.httpStatus = httpStatus;
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.gone || this.httpStatus !== 0) return;
    this.#connection.begin(httpStatus, [fields, dateFields(), this.addedFields]);
    this.httpStatus = httpStatus;
  }

  end(trailer?: HeaderFields): void {
    if (this.gone || !this.#isCurrent) return;
    this.complete();
    this.#connection.end(trailer);
  }

  reset(): void {
    if (this.#isCurrent) this.#connection.destroy();
  }

  onBroken(problem: HttpProblem): void {
    if (this.httpStatus === 0) this.#refuse(this, problem);
    // An answer that has begun cannot be completed any more; a call that is still being admitted need not run.
    else this.#connection.destroy();
    this.lose(problem.error);
  }

  onGone(): void {
    this.lose(goneAway());
  }

  #answerInPieces(
    httpStatus: number,
    fields: readonly HeaderFields[],
    body: Uint8Array | undefined,
    trailer: HeaderFields,
  ): void {
    this.#connection.begin(httpStatus, fields);
    if (body !== undefined) this.#connection.write(body);
    this.#connection.end(trailer);
  }

  protected send(piece: Uint8Array): boolean {
    return this.#isCurrent && this.#connection.write(piece);
  }

  /** Whether the connection has not gone on to another request. */
  get #isCurrent(): boolean {
    return this.#connection.receiver === this;
  }

  protected consumed(bytes: number): void {
    this.#connection.consumed(bytes);
  }

  protected wanted(): void {
    if (this.httpStatus === 0) this.#connection.continue();
  }
}
