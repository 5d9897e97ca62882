import {
  runAfterTurn,
  type BodySource,
  bodyConsumedProblem,
  BaseExchange,
  clientClosedRequest,
  clientGoneProblem,
  CommonHeaderFields,
  type HeaderFields,
  type Peer,
  RequestBody,
} from "./exchange/index.ts";

/** An exchange that consists of a Fetch `Request` and `Response`. */
export class FetchExchange extends BaseExchange implements BodySource {
  readonly httpVersion = undefined;
  readonly host: string;
  readonly peer: Peer;
  readonly body: RequestBody | undefined;
  /** Fetch does not expose connections, so each exchange counts as a separate connection. */
  readonly connection: object = {};
  /** Resolves with the response when the response header is known. */
  readonly response: Promise<Response>;
  readonly #request: Request;
  readonly #respond: (response: Response) => void;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Resumes reading the body after backpressure. */
  #resume: (() => void) | undefined;
  #responseBody: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(request: Request, peer: Peer = unknownPeer) {
    // The platform's URL parser has already removed dot segments from the URL.
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
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener("abort", this.#onAbort);
  }

  get isMounted(): boolean {
    return true;
  }

  /** Whether the program has read from the body, or is reading the body. */
  get isBodyRead(): boolean {
    const { bodyUsed, body } = this.#request;
    return bodyUsed || body?.locked === true;
  }

  /** @throws HttpProblem if the program reads the body itself, for example in a request gate */
  startBody(): void {
    if (this.isBodyRead) throw bodyConsumedProblem();
    this.#reader = this.#request.body?.getReader();
    if (this.#reader !== undefined) void this.#readBody(this.#reader);
  }

  /** Leaves the request to another handler, which responds to it. */
  handOver(): void {
    this.complete();
  }

  consumed(): void {
    if (this.body?.isFull !== true) this.#resume?.();
  }

  protected sendResponse(httpStatus: number, fields: HeaderFields, body: Uint8Array | undefined): void {
    const headers = this.#toHeaders(fields);
    if (body !== undefined) headers.set("content-length", String(body.byteLength));
    // The cast is safe: the DOM types exclude shared memory, which the gateway does not use.
    const content = this.httpMethod === "HEAD" ? null : (body as Uint8Array<ArrayBuffer> | undefined);
    this.#respond(new Response(content, responseInit(httpStatus, headers)));
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#respond(new Response(this.#openBody(), responseInit(httpStatus, this.#toHeaders(fields))));
  }

  protected sendPiece(piece: Uint8Array): boolean {
    const body = this.#responseBody;
    if (body === undefined) return false;
    // Copies the piece, because a reader may transfer the buffer, and other pieces may share the buffer.
    body.enqueue(new Uint8Array(piece));
    return (body.desiredSize ?? 0) <= 0;
  }

  protected sendEnd(): void {
    this.#responseBody?.close();
  }

  protected sendReset(): void {
    this.complete();
    // Resolves with a response, because the server might send the error of a rejected promise to the client.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: 500 }));
    else failBody(this.#responseBody);
  }

  /** Aborts the exchange, because the client has disconnected, or the request body has failed. */
  readonly #onAbort = (): void => {
    if (!this.isOpen) return;
    // The client does not get this response, but the server waits for a response.
    if (this.httpStatus === 0) this.#respond(new Response(null, { status: clientClosedRequest }));
    // Fails the body after this event-loop turn, in which most servers cancel the body. Deno logs an error if a body
    // fails while Deno reads the body.
    else runAfterTurn(failBody, this.#responseBody);
    this.abort(clientGoneProblem());
    this.#release();
  };

  protected override complete(): void {
    super.complete();
    this.#release();
  }

  /** Releases the request. The body is not cancelled: some servers would close the connection and lose the response. */
  #release(): void {
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    this.#reader?.releaseLock();
  }

  async #readBody(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
    try {
      while (await this.#readPiece(reader)) {
        if (this.body?.isFull === true) await new Promise<void>((resolve) => (this.#resume = resolve));
      }
    } catch {
      // Reading fails if the client has disconnected, or if the response is complete and the lock was released.
      this.#onAbort();
    }
  }

  /** Reads one piece. A loop in one function would keep the piece in memory while waiting for the next piece. */
  async #readPiece(reader: ReadableStreamDefaultReader<unknown>): Promise<boolean> {
    const { done, value } = await reader.read();
    if (done) this.body?.onEnd();
    // Ignores chunks that are not bytes, which a body that was created by the program may contain.
    else if (value instanceof Uint8Array) this.body?.onData(value, false);
    else this.#onAbort();
    return value instanceof Uint8Array;
  }

  #openBody(): ReadableStream<Uint8Array> {
    const pull = (): void => this.onWritable();
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      this.#responseBody = controller;
    };
    const strategy = new ByteLengthQueuingStrategy({ highWaterMark: maxBufferedBytes });
    return new ReadableStream({ start, pull, cancel: this.#onAbort }, strategy);
  }

  #toHeaders(fields: HeaderFields): Headers {
    const headers = new Headers();
    for (const list of [fields, this.addedFields]) {
      for (let i = 0; i < list.length; i += 2) headers.append(list[i] ?? "", list[i + 1] ?? "");
    }
    return headers;
  }
}

/** Without `encodeBody`, Cloudflare Workers would compress a compressed body again. */
function responseInit(status: number, headers: Headers): ResponseInit & { readonly encodeBody: "manual" } {
  return { status, headers, encodeBody: "manual" };
}

/** Reports an incomplete body to the reader of the response. Does nothing if the response was cancelled. */
function failBody(body: ReadableStreamDefaultController<Uint8Array> | undefined): void {
  body?.error(new TypeError("the response is incomplete"));
}

/** Number of buffered response bytes at which the handler has to wait. */
const maxBufferedBytes = 64 * 1024;

const unknownPeer: Peer = { address: "", port: 0 };

/** Splits the URL of a request, and removes the fragment. The URL is absolute and normalized. */
function splitUrl(absoluteUrl: string): { readonly url: string; readonly host: string; readonly target: string } {
  const hostAt = absoluteUrl.indexOf("//") + 2;
  const targetAt = absoluteUrl.indexOf("/", hostAt);
  const fragmentAt = absoluteUrl.indexOf("#", targetAt);
  const url = fragmentAt < 0 ? absoluteUrl : absoluteUrl.slice(0, fragmentAt);
  return { url, host: url.slice(hostAt, targetAt), target: url.slice(targetAt) };
}
