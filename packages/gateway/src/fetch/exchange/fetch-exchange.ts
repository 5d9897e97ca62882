import {
  afterTurn,
  type BodySource,
  bodyWasRead,
  BaseExchange,
  clientClosedRequest,
  clientGone,
  CommonHeaderFields,
  type HeaderFields,
  type Peer,
  RequestBody,
  statusesWithoutBody,
} from "../../exchange/index.ts";

/** An exchange carried by a `Request` and a `Response` of Fetch. */
export class FetchExchange extends BaseExchange implements BodySource {
  readonly httpVersion = undefined;
  readonly host: string;
  readonly peer: Peer;
  readonly body: RequestBody | undefined;
  /** Fetch does not tell connections apart, so each exchange counts as a connection of its own. */
  readonly connection: object = {};
  /** Resolves with the answer as soon as its header is there. */
  readonly response: Promise<Response>;
  readonly #request: Request;
  readonly #respond: (response: Response) => void;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Goes on reading the body, which has waited for its call to take some of it. */
  #readOn: (() => void) | undefined;
  #answer: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(request: Request, peer: Peer = unknownPeer) {
    // As the platform's URL parser leaves it: without dot segments.
    const { url, host, target } = splitUrl(request.url);
    const fields = [...request.headers].flat();
    const common = new CommonHeaderFields(fields);
    const bodyBytes = request.body === null ? undefined : Number(common.contentLength ?? 0);
    super({ httpMethod: request.method, target, url, fields, common });
    this.body = bodyBytes === undefined ? undefined : new RequestBody(this, bodyBytes);
    this.host = host;
    this.peer = peer;
    this.#request = request;
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.response = promise;
    this.#respond = resolve;
    const { signal } = request;
    if (signal.aborted) this.#breakOff();
    else signal.addEventListener("abort", this.#breakOff);
  }

  get isMounted(): boolean {
    return true;
  }

  /** Whether the program has read some of the body, or is reading it. */
  get isBodyRead(): boolean {
    const { bodyUsed, body } = this.#request;
    return bodyUsed || body?.locked === true;
  }

  /** @throws HttpProblem when the program reads the body itself, for example in a request gate */
  startBody(): void {
    if (this.isBodyRead) throw bodyWasRead();
    this.#reader = this.#request.body?.getReader();
    if (this.#reader !== undefined) void this.#readBody(this.#reader);
  }

  /** Lets go of the request, which somebody else answers. */
  passOn(): void {
    this.complete();
  }

  consumed(): void {
    if (this.body?.isFull !== true) this.#readOn?.();
  }

  protected sendResponse(httpStatus: number, fields: HeaderFields, body: Uint8Array | undefined): void {
    const headers = this.#toHeaders(fields);
    if (body !== undefined) headers.set("content-length", String(body.byteLength));
    // The DOM's types rule out shared memory, and none is used here.
    const content = this.#allowsBody(httpStatus) ? (body as Uint8Array<ArrayBuffer> | undefined) : null;
    this.#respond(new Response(content, responseInit(httpStatus, headers)));
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    const headers = this.#toHeaders(fields);
    const answer = this.#allowsBody(httpStatus) ? this.#openAnswer() : null;
    this.#respond(new Response(answer, responseInit(httpStatus, headers)));
  }

  protected sendPiece(piece: Uint8Array): boolean {
    const answer = this.#answer;
    if (answer === undefined) return false;
    // Copied, because a reader may transfer the buffer, and other pieces may share it.
    answer.enqueue(new Uint8Array(piece));
    return (answer.desiredSize ?? 0) <= 0;
  }

  protected sendEnd(): void {
    this.#answer?.close();
  }

  protected sendReset(): void {
    this.complete();
    // A server needs a response; if it got an error instead, it might show that to the client.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: 500 }));
    else failAnswer(this.#answer);
  }

  /** Ends the exchange because the client has gone away, or its body has broken off. */
  readonly #breakOff = (): void => {
    if (!this.isOpen) return;
    // Nobody reads it, but a server waits for it.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: clientClosedRequest }));
    // After this turn, in which most servers cancel the body: Deno logs the error of a body that it still reads.
    else afterTurn(failAnswer, this.#answer);
    this.abort(clientGone());
    this.#release();
  };

  protected override complete(): void {
    super.complete();
    this.#release();
  }

  /**
   * Lets go of the request. Its body is never cancelled: some servers take that for the end of
   * the connection, and the answer would be lost. What is not read is left to the server.
   */
  #release(): void {
    this.#request.signal.removeEventListener("abort", this.#breakOff);
    this.#reader?.releaseLock();
  }

  async #readBody(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
    try {
      while (await this.#readPiece(reader)) {
        if (this.body?.isFull === true) await new Promise<void>((resolve) => (this.#readOn = resolve));
      }
    } catch {
      // Whatever the cause, to us its sender has gone away; or the lock was released, because the answer is complete.
      this.#breakOff();
    }
  }

  /** Reads in a function of its own: the loop around it would keep the piece while it waits for the next. */
  async #readPiece(reader: ReadableStreamDefaultReader<unknown>): Promise<boolean> {
    const { done, value } = await reader.read();
    if (done) this.body?.onEnd();
    // A program may make a body of chunks that are not bytes.
    else if (value instanceof Uint8Array) this.body?.onData(value, false);
    else this.#breakOff();
    return value instanceof Uint8Array;
  }

  #openAnswer(): ReadableStream<Uint8Array> {
    const pull = (): void => this.onWritable();
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
      for (let i = 0; i < list.length; i += 2) headers.append(list[i] ?? "", list[i + 1] ?? "");
    }
    return headers;
  }
}

/** Returns the options of a response. Without `encodeBody`, Cloudflare's workers would encode an encoded body again. */
function responseInit(status: number, headers: Headers): ResponseInit & { readonly encodeBody: "manual" } {
  return { status, headers, encodeBody: "manual" };
}

/** Tells the reader of an answer that it is incomplete; does nothing if the answer was cancelled. */
function failAnswer(answer: ReadableStreamDefaultController<Uint8Array> | undefined): void {
  answer?.error(new TypeError("the response is incomplete"));
}

/** Bytes of an answer that wait for their reader, above which the handler is not asked for more. */
// 64 KiB, what is collected in one turn: the next turn is prepared while this one is being sent.
const answerBytesMax = 64 * 1024;

const unknownPeer: Peer = { address: "", port: 0 };

/** Splits the URL of a request, which is absolute and has been parsed, and removes its fragment. */
function splitUrl(whole: string): { readonly url: string; readonly host: string; readonly target: string } {
  const hostAt = whole.indexOf("//") + 2;
  const targetAt = whole.indexOf("/", hostAt);
  const fragmentAt = whole.indexOf("#", targetAt);
  const url = fragmentAt < 0 ? whole : whole.slice(0, fragmentAt);
  return { url, host: url.slice(hostAt, targetAt), target: url.slice(targetAt) };
}
