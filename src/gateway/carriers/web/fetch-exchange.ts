import {
  type AbortReceiver,
  afterTurn,
  type BodyReceiver,
  CommonHeaderFields,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Peer,
  readHeaderField,
  statusesWithoutBody,
} from "../index.ts";
import { FetchBody } from "./fetch-body.ts";

/** An exchange carried by a `Request` and a `Response` of Fetch. */
export class FetchExchange implements Exchange {
  readonly httpVersion = undefined;
  readonly httpMethod: string;
  /** As the platform's URL parser leaves it: without dot segments and without a fragment. */
  readonly target: string;
  readonly url: string;
  readonly host: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  readonly peer: Peer;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  /** Resolves with the answer as soon as its header is there. */
  readonly response: Promise<Response>;
  readonly #respond: (response: Response) => void;
  readonly #signal: AbortSignal;
  readonly #body: FetchBody;
  #answer: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Called when the client takes more, or never will. */
  #drained: (() => void) | undefined;

  constructor(request: Request, peer: Peer = unknownPeer) {
    const { url, host, target } = splitUrl(request.url);
    const fields: string[] = [];
    for (const [name, value] of request.headers) fields.push(name, value);
    this.httpMethod = request.method;
    this.target = target;
    this.url = url;
    this.host = host;
    this.fields = fields;
    this.common = new CommonHeaderFields(fields);
    this.peer = peer;
    this.bodyEmpty = request.body === null;
    this.#body = new FetchBody(request.body, this.#breakOff);
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.response = promise;
    this.#respond = resolve;
    this.#signal = request.signal;
    if (this.#signal.aborted) this.#breakOff();
    else this.#signal.addEventListener("abort", this.#breakOff);
  }

  /** Fetch does not tell connections apart, so each exchange counts as a connection of its own. */
  get connection(): object {
    return this;
  }

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    if (Number(this.common.contentLength ?? 0) > limitBytes) return receiver.received(undefined);
    this.#body.read(limitBytes).then(
      (body) => {
        if (!this.gone && this.httpStatus === 0) receiver.received(body);
      },
      // Either the sender has gone away, of which the call was notified, or the answer is complete.
      () => undefined,
    );
  }

  streamBody(): AsyncIterable<Uint8Array> {
    return this.#body.pieces();
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array): void {
    if (this.gone || this.httpStatus !== 0) return;
    const headers = this.#toHeaders(fields);
    if (body !== undefined) headers.set("content-length", String(body.byteLength));
    // The DOM's types rule out shared memory, and none is used here.
    const content = this.#allowsBody(httpStatus) ? (body as Uint8Array<ArrayBuffer> | undefined) : null;
    const response = new Response(content, responseInit(httpStatus, headers));
    this.httpStatus = httpStatus;
    this.#finish();
    this.#respond(response);
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.gone || this.httpStatus !== 0) return;
    const headers = this.#toHeaders(fields);
    const answer = this.#allowsBody(httpStatus) ? this.#openAnswer() : null;
    const response = new Response(answer, responseInit(httpStatus, headers));
    this.httpStatus = httpStatus;
    this.#respond(response);
  }

  write(piece: Uint8Array): void | Promise<void> {
    if (this.gone) return Promise.reject(goneAway());
    const answer = this.#answer;
    if (answer === undefined) return;
    // Copied, because a reader may transfer the buffer, and other pieces may share it.
    answer.enqueue(new Uint8Array(piece));
    if ((answer.desiredSize ?? 0) > 0) return;
    return new Promise((resolve, reject) => {
      this.#drained = () => (this.gone ? reject(goneAway()) : resolve());
    });
  }

  end(): void {
    if (this.gone) return;
    this.#finish();
    this.#answer?.close();
  }

  reset(): void {
    if (this.gone) return;
    this.#finish();
    // A server needs a response; if it got an error instead, it might show that to the client.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: 500 }));
    else failAnswer(this.#answer);
  }

  /** Ends the exchange because the client has gone away, or its body has broken off. */
  readonly #breakOff = (): void => {
    if (this.gone) return;
    this.gone = true;
    this.#finish();
    const reason = goneAway();
    // Nobody reads it, but a server waits for it. 499: what nginx logs in this case.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: 499 }));
    // After this turn, in which most servers cancel the body: Deno logs the error of a body that it still reads.
    else afterTurn(failAnswer, this.#answer);
    this.#drained?.();
    this.abortReceiver?.aborted(reason);
  };

  #openAnswer(): ReadableStream<Uint8Array> {
    const pull = (): void => {
      this.#drained?.();
      this.#drained = undefined;
    };
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      this.#answer = controller;
    };
    const strategy = new ByteLengthQueuingStrategy({ highWaterMark: answerBytesMax });
    return new ReadableStream({ start, pull, cancel: this.#breakOff }, strategy);
  }

  /** `Response` takes no body with a status that has none (Fetch §2.2.3). */
  #allowsBody(httpStatus: number): boolean {
    return this.httpMethod !== "HEAD" && !statusesWithoutBody.has(httpStatus);
  }

  #toHeaders(fields: HeaderFields): Headers {
    const headers = new Headers();
    for (const list of [fields, this.addedFields]) {
      for (let i = 0; i < list.length; i += 2) headers.append(list[i] as string, list[i + 1] as string);
    }
    return headers;
  }

  /** Releases what the exchange holds of its request. */
  #finish(): void {
    this.#signal.removeEventListener("abort", this.#breakOff);
    this.#body.abandon();
  }
}

/** Returns the options of a response. Without `encodeBody`, Cloudflare's workers would encode an encoded body again. */
function responseInit(status: number, headers: Headers): ResponseInit & { readonly encodeBody: "manual" } {
  return { status, headers, encodeBody: "manual" };
}

/** Tells the reader of an answer that it is incomplete; does nothing if the answer was cancelled. */
function failAnswer(answer: ReadableStreamDefaultController<Uint8Array> | undefined): void {
  answer?.error(new TypeError("the answer is incomplete"));
}

/** Bytes of an answer that wait for their reader, above which the handler is not asked for more. */
// 64 KiB, what is collected in one turn: the next turn is prepared while this one is being sent.
const answerBytesMax = 64 * 1024;

const none: HeaderFields = [];
const unknownPeer: Peer = { address: "", port: 0 };

/** Splits the URL of a request, which is absolute and has been parsed, and removes its fragment. */
function splitUrl(whole: string): { readonly url: string; readonly host: string; readonly target: string } {
  const hostAt = whole.indexOf("//") + 2;
  const targetAt = whole.indexOf("/", hostAt);
  const fragmentAt = whole.indexOf("#", targetAt);
  const url = fragmentAt < 0 ? whole : whole.slice(0, fragmentAt);
  return { url, host: url.slice(hostAt, targetAt), target: url.slice(targetAt) };
}
