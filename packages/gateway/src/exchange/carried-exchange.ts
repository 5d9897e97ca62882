import type { AbortReceiver, Exchange, Peer } from "./exchange.ts";
import { type CommonHeaderFields, type HeaderFields, readHeaderField } from "./header-fields.ts";
import type { HttpProblem } from "./http-problem.ts";
import type { RequestBody } from "./request-body.ts";

/** What a carrier knows of a request when its header has arrived. */
export interface ExchangeHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
}

/**
 * What the exchanges of all carriers share: the order of an answer, the waiting for a client that takes no more, and
 * what happens when it goes away. A carrier says how each part of an answer is sent, and puts in the body.
 */
export abstract class CarriedExchange implements Exchange {
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
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  /** Called once all of the answer has been handed to the carrier. */
  onComplete: (() => void) | undefined;
  /** Whether all of the answer has been handed to the carrier. */
  protected isComplete = false;
  /** Resolved when the client takes more of the answer, or never will. */
  #writable: PromiseWithResolvers<void> | undefined;

  constructor({ httpMethod, target, url, fields, common }: ExchangeHead) {
    this.httpMethod = httpMethod;
    this.target = target;
    this.url = url;
    this.fields = fields;
    this.common = common;
  }

  /** Sends a whole answer. Throws, before anything is sent, for a field that HTTP does not allow. */
  protected abstract sendAnswer(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void;
  /** Sends the header of an answer. Throws as {@link sendAnswer} does. */
  protected abstract sendHeader(httpStatus: number, fields: HeaderFields): void;
  /** Sends a piece of the body, and returns whether the client should take some of it before more is sent. */
  protected abstract sendPiece(piece: Uint8Array): boolean;
  protected abstract sendEnd(trailer: HeaderFields | undefined): void;
  protected abstract sendReset(): void;

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  /** Whether what is sent now may arrive. */
  protected get isOpen(): boolean {
    return !this.aborted && !this.isComplete;
  }

  /** Whether an answer may begin. */
  get #isUnanswered(): boolean {
    return this.isOpen && this.httpStatus === 0;
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    if (!this.#isUnanswered) return;
    requireFinalStatus(httpStatus);
    this.httpStatus = httpStatus;
    try {
      this.sendAnswer(httpStatus, fields, body, trailer);
    } catch (error) {
      this.httpStatus = 0;
      throw error;
    }
    this.complete();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (!this.#isUnanswered) return;
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

  /** Called by the carrier when the client takes more of the answer. */
  onWritable(): void {
    this.#writable?.resolve();
    this.#writable = undefined;
  }

  /** Ends the exchange, because the rest of its request will not come or no answer can arrive. */
  protected abort(problem: HttpProblem): void {
    this.aborted = true;
    this.body?.close(problem);
    this.onWritable();
    this.abortReceiver?.aborted(problem);
  }

  /** Releases the unread part of the body; what still arrives of it is dropped. */
  protected complete(): void {
    this.isComplete = true;
    this.body?.close();
    this.onComplete?.();
  }
}

const none: HeaderFields = [];

/** Throws RangeError for what is not the status of a final response: 1xx are interim (RFC 9110 §15). */
function requireFinalStatus(httpStatus: number): void {
  if (Number.isInteger(httpStatus) && httpStatus >= 200 && httpStatus <= 599) return;
  throw new RangeError(`the HTTP status must be an integer between 200 and 599, got ${httpStatus}`);
}
