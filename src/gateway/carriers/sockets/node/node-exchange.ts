import type { Readable, Stream as NodeStream } from "node:stream";
import {
  CarriedExchange,
  type ExchangeHead,
  type HeaderFields,
  type HttpProblem,
  type Peer,
  requireField,
} from "../../index.ts";

/** What the answers of node:http and of the compatibility layer of node:http2 share. */
export interface NodeResponse extends NodeStream {
  readonly headersSent: boolean;
  statusCode: number;
  setHeader(name: string, value: string | string[]): unknown;
  addTrailers(fields: Record<string, string | string[]>): void;
  write(piece: Uint8Array): boolean;
  end(): unknown;
}

/**
 * An exchange carried by a server that is not ours: of node:http or node:http2, or of Express or Fastify, whose request
 * and response objects are node's own. The connection and its time-outs belong to that server.
 *
 * All share their event listeners, which find the exchange under a symbol of the stream. Closures would keep each call
 * alive for as long as node keeps its stream. That is longer than young objects live, and doubles the time of garbage
 * collection.
 */
export abstract class NodeExchange extends CarriedExchange {
  readonly peer: Peer;
  readonly #request: Carrying<Readable>;
  readonly #response: Carrying<NodeResponse>;
  /** Whether the answer ends with its header section. */
  protected isHeaderOnly = false;
  #isReading = false;

  constructor(request: Readable, response: NodeResponse, head: ExchangeHead, peer: Peer) {
    super(head);
    this.peer = peer;
    this.#request = request;
    this.#response = response;
    this.#request[exchangeKey] = this;
    this.#response[exchangeKey] = this;
    response.on("close", onClose);
  }

  /** Whether the response has closed, and may be about to say so. */
  protected abstract readonly isClosed: boolean;
  /** Sends the header section, so that the answer does not end with it. */
  protected abstract flushHeader(): void;
  /** Returns why the response has closed before the answer was complete. */
  protected abstract closeProblem(): HttpProblem;

  /** The program may have begun an answer of its own. */
  protected override get isOpen(): boolean {
    return super.isOpen && !this.isClosed && (this.httpStatus !== 0 || !this.#response.headersSent);
  }

  startBody(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#request.on("data", onData).on("end", onEnd);
    // A listener alone does not start a stream that was paused before the gateway got it.
    this.#request.resume();
  }

  consumed(_bytes: number): void {
    if (this.body?.isFull !== true && this.#request.isPaused()) this.#request.resume();
  }

  protected sendAnswer(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    const trailers = toRecord(trailer ?? []);
    const hasLength = trailer === undefined && body !== undefined;
    this.setHeader(httpStatus, hasLength ? [...fields, "content-length", String(body.byteLength)] : fields);
    if (trailer !== undefined) this.flushHeader();
    this.#response.addTrailers(trailers);
    const hasBody = body !== undefined && body.byteLength > 0 && this.httpMethod !== "HEAD";
    this.isHeaderOnly = trailer === undefined && !hasBody;
    if (hasBody) this.#response.write(body);
    this.#response.end();
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.setHeader(httpStatus, fields);
    this.flushHeader();
  }

  protected sendPiece(piece: Uint8Array): boolean {
    const isTaken = this.#response.write(piece);
    if (!isTaken) this.#response.once("drain", onDrain);
    return !isTaken;
  }

  protected sendEnd(trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#response.addTrailers(toRecord(trailer));
    this.#response.end();
  }

  /** Prepares the header section. Throws, before anything is sent, for a field that HTTP does not allow. */
  protected setHeader(httpStatus: number, fields: HeaderFields): void {
    const response = this.#response;
    const record = toRecord([...fields, ...this.addedFields]);
    response.statusCode = httpStatus;
    for (const [name, values] of Object.entries(record)) response.setHeader(name, values);
  }

  /** Also drops the rest of the body as it arrives: node frees no stream that is not read to its end. */
  protected override complete(): void {
    super.complete();
    if (this.body?.ended !== false) return;
    this.startBody();
    this.#request.resume();
  }

  /** Called when the response has closed. */
  closed(): void {
    this.#request[exchangeKey] = undefined;
    this.#response[exchangeKey] = undefined;
    if (this.isComplete) return;
    this.abort(this.closeProblem());
    // Node keeps what it has read ahead for as long as there is the stream.
    while (this.#request.read() !== null);
  }

  /** Called when the body has ended. node also ends that of a stream that was reset, which is incomplete. */
  ended(): void {
    if (!this.isClosed) this.body?.onEnd();
  }
}

const exchangeKey: unique symbol = Symbol("exchange");
type Carrying<Stream> = Stream & { [exchangeKey]?: NodeExchange | undefined };

function onData(this: Carrying<Readable>, piece: Uint8Array): void {
  const body = this[exchangeKey]?.body;
  body?.onData(piece, false);
  if (body?.isFull === true) this.pause();
}

function onEnd(this: Carrying<Readable>): void {
  this[exchangeKey]?.ended();
}

function onDrain(this: Carrying<NodeResponse>): void {
  this[exchangeKey]?.onWritable();
}

function onClose(this: Carrying<NodeResponse>): void {
  this[exchangeKey]?.closed();
}

/** Returns the values of fields by their names. Of fields that HTTP forbids node:http2 drops some, and sends others. */
function toRecord(fields: HeaderFields): Record<string, string | string[]> {
  // Without the names that other objects inherit, which a field may have.
  const record: Record<string, string | string[]> = Object.create(null);
  for (let i = 0; i < fields.length; i += 2) {
    const [name = "", value = ""] = fields.slice(i, i + 2);
    requireField(name, value);
    const before = record[name];
    record[name] = before === undefined ? value : [before, value].flat();
  }
  return record;
}
