import { type AbortReceiver, type Exchange, type Peer, statusesWithoutBody } from "./exchange.ts";
import { type CommonHeaderFields, type HeaderFields, readHeaderField } from "./header-fields.ts";
import type { HttpProblem } from "./http-problem.ts";
import type { RequestBody } from "./request-body.ts";

/** The properties of a request that are known from the header. */
export interface ExchangeHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
}

/** Base class for exchanges. Handles the order of method calls, backpressure and disconnected clients. */
export abstract class BaseExchange implements Exchange {
  abstract readonly httpVersion: Exchange["httpVersion"];
  abstract readonly isMounted: boolean;
  abstract readonly peer: Peer;
  abstract readonly connection: object;
  abstract readonly body: RequestBody | undefined;
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  httpStatus = 0;
  aborted = false;
  addedFields: HeaderFields = noFields;
  abortReceiver: AbortReceiver | undefined;
  protected isComplete = false;
  /** Resolves when more of the response can be written, or when the client has disconnected. */
  #writable: PromiseWithResolvers<void> | undefined;

  constructor({ httpMethod, target, url, fields, common }: ExchangeHead) {
    this.httpMethod = httpMethod;
    this.target = target;
    this.url = url;
    this.fields = fields;
    this.common = common;
  }

  /** Sends a complete response. Throws before sending anything if HTTP does not allow a field. */
  protected abstract sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void;
  /** Sends a response header. Throws like {@link sendResponse}. */
  protected abstract sendHeader(httpStatus: number, fields: HeaderFields): void;
  /** Sends a piece of the body. Returns whether the caller should wait until the client has read some data. */
  protected abstract sendPiece(piece: Uint8Array): boolean;
  protected abstract sendEnd(trailer: HeaderFields | undefined): void;
  protected abstract sendReset(): void;

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  /** Whether a response can still be sent. */
  protected get isOpen(): boolean {
    return !this.aborted && !this.isComplete;
  }

  get #canRespond(): boolean {
    return this.isOpen && this.httpStatus === 0;
  }

  respond(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    if (!this.#canRespond) return;
    requireFinalStatus(httpStatus);
    this.httpStatus = httpStatus;
    try {
      // A dropped body has no Content-Length, which RFC 9110 §8.6 forbids for 204, and for 304 unless 200 has the same.
      this.sendResponse(httpStatus, fields, statusesWithoutBody.has(httpStatus) ? undefined : body, trailer);
    } catch (error) {
      this.httpStatus = 0;
      throw error;
    }
    this.complete();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (!this.#canRespond) return;
    requireFinalStatus(httpStatus);
    this.sendHeader(httpStatus, fields);
    this.httpStatus = httpStatus;
  }

  write(piece: Uint8Array): void | Promise<void> {
    if (!this.isOpen || !this.sendPiece(piece)) return;
    return (this.#writable ??= Promise.withResolvers<void>()).promise;
  }

  end(trailer?: HeaderFields): void {
    if (!this.isOpen) return;
    this.sendEnd(trailer);
    this.complete();
  }

  reset(): void {
    if (this.isOpen) this.sendReset();
  }

  onWritable(): void {
    this.#writable?.resolve();
    this.#writable = undefined;
  }

  /** Aborts the exchange, because the rest of the request will not arrive, or the response cannot be delivered. */
  protected abort(problem: HttpProblem): void {
    this.aborted = true;
    this.body?.close(problem);
    this.onWritable();
    this.abortReceiver?.clientAborted(problem);
  }

  /** Drops the unread request body, including bytes that arrive later. */
  protected complete(): void {
    this.isComplete = true;
    this.body?.close();
  }
}

const noFields: HeaderFields = [];

/** Throws RangeError for a status that is not final. Statuses from 100 to 199 are interim (RFC 9110 §15). */
function requireFinalStatus(httpStatus: number): void {
  if (Number.isInteger(httpStatus) && httpStatus >= 200 && httpStatus <= 599) return;
  throw new RangeError(`the HTTP status must be an integer between 200 and 599, got ${httpStatus}`);
}
