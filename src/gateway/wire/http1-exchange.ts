import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Peer } from "./admit.ts";
import { type AbortListener, type BodyReceiver, type Exchange, lingerMs, unreadBodyBytesMax } from "./exchange.ts";
import { goneAway } from "./gone-away.ts";
import { type HeaderFields, readField } from "./header-fields.ts";

/** How a server of HTTP/1.1 keeps its connections. */
export interface ConnectionPolicy {
  /** Whether the server drains, so that a connection ends with its next answer. */
  readonly closing: () => boolean;
  /** How long a client may take nothing of what waits for it; 0 for ever. */
  readonly stallTimeoutMs: number;
  /** How many requests may be under way before what the client sends ahead is left unread. What was read at once may be more. */
  readonly requestsMax: number;
  /** What answers say of how long their connection is kept; nothing where node says it, or nobody. */
  readonly keepAlive: HeaderFields;
}

/**
 * An exchange carried by node:http, HTTP/1.0 and HTTP/1.1.
 *
 * Also carries requests that come through an Express or Fastify server, whose response objects are
 * node's own.
 */
export class Http1Exchange implements Exchange {
  readonly httpVersion: "1.0" | "1.1";
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: HeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  listener: AbortListener | undefined;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #policy: ConnectionPolicy;
  /** Nothing follows on the connection. */
  #last = false;

  /** @param target - the request target in origin form */
  constructor(request: IncomingMessage, response: ServerResponse, target: string, policy: ConnectionPolicy) {
    this.httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
    this.httpMethod = request.method ?? "";
    this.target = target;
    this.fields = request.rawHeaders;
    this.bodyEmpty = !announcesBody(this.fields);
    this.#request = request;
    this.#response = response;
    this.#policy = policy;
    carry(request.socket, this);
    if (this.bodyEmpty) this.#pauseReading();
  }

  get origin(): string {
    const scheme = "encrypted" in this.#request.socket ? "https" : "http";
    return `${scheme}://${readField(this.fields, "host") ?? ""}`;
  }

  get peer(): Peer {
    return peerOf(this.#request.socket);
  }

  get connection(): object {
    return this.#request.socket;
  }

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    const request = this.#request;
    if (this.bodyEmpty) return receiver.received(empty);
    if (Number(readField(this.fields, "content-length") ?? 0) > limitBytes) return receiver.received(undefined);
    this.#continue();
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    const onData = (piece: Uint8Array): void => {
      bytes += piece.byteLength;
      pieces.push(piece);
      if (bytes <= limitBytes) return;
      stop();
      receiver.received(undefined);
    };
    const onEnd = (): void => {
      stop();
      // To read the body the socket was started again.
      this.#pauseReading();
      receiver.received(joinBytes(pieces, bytes));
    };
    const stop = (): void => {
      request.off("data", onData).off("end", onEnd);
    };
    request.on("data", onData).on("end", onEnd);
  }

  streamBody(): AsyncIterable<Uint8Array> {
    this.#continue();
    // Left undestroyed: node would destroy the socket with it, and the answer is still to come.
    return { [Symbol.asyncIterator]: () => this.#request.iterator({ destroyOnReturn: false }) };
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    let head = fields;
    if (trailer === undefined && body !== undefined) head = [...head, "content-length", String(body.byteLength)];
    this.#writeHead(httpStatus, head);
    if (trailer !== undefined) response.addTrailers(toTuples(trailer));
    if (body !== undefined && body.byteLength > 0) response.write(body);
    this.#end();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#writeHead(httpStatus, fields);
    this.#response.flushHeaders();
  }

  write(piece: Uint8Array): Promise<void> {
    const response = this.#response;
    if (response.destroyed) return Promise.reject(goneAway());
    if (response.write(piece)) return ready;
    this.#watchReader();
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        response.off("drain", settle).off("close", settle);
        if (response.destroyed) reject(goneAway());
        else resolve();
      };
      response.on("drain", settle).on("close", settle);
    });
  }

  end(trailer?: HeaderFields): void {
    const response = this.#response;
    if (response.destroyed) return;
    if (trailer !== undefined) response.addTrailers(toTuples(trailer));
    this.#end();
  }

  reset(): void {
    // HTTP/1.1 has no other way to say that a body is not complete (RFC 9112 §8).
    this.#request.socket.destroy();
  }

  #writeHead(httpStatus: number, fields: HeaderFields): void {
    this.httpStatus = httpStatus;
    let head = fields;
    if (this.addedFields.length > 0) head = [...head, ...this.addedFields];
    const { closing, keepAlive } = this.#policy;
    if (this.#last || !this.#bodyIsSmall() || closing()) {
      if (readField(head, "connection") === null) head = [...head, "connection", "close"];
    } else if (keepAlive.length > 0 && this.#response.shouldKeepAlive) {
      head = head.length === 0 ? keepAlive : [...head, ...keepAlive];
    }
    this.#response.writeHead(httpStatus, head as string[]);
  }

  /** Whether what is left of the body can be taken in, so that the next request finds its start. */
  #bodyIsSmall(): boolean {
    if (this.#request.complete || this.bodyEmpty) return true;
    // A client that was not told to continue does not send the body, or does: there is no telling.
    if (readField(this.fields, "expect") !== null && !this.#continued) return false;
    const length = readField(this.fields, "content-length");
    return length !== null && Number(length) <= unreadBodyBytesMax;
  }

  /** Whether the request is there to its last byte. */
  get requestComplete(): boolean {
    return this.#request.complete;
  }

  /** Makes its answer the last of the connection, which ends behind it. */
  endConnection(): void {
    if (this.#last) return;
    this.#last = true;
    const { socket } = this.#request;
    this.#response.on("finish", () => socket.destroySoon());
  }

  /** The connection has closed. */
  closed(): void {
    this.gone = true;
    if (!this.#response.writableEnded) this.listener?.aborted(goneAway());
  }

  /** Ends the answer, but not the connection while the client still sends a body that nobody reads. */
  #end(): void {
    const request = this.#request;
    const response = this.#response;
    if (this.#bodyIsSmall()) {
      // node reads on by itself only where nobody has begun to read.
      if (!request.complete) request.on("data", ignore).resume();
      this.#finish();
      return;
    }
    // node keeps the header of an empty answer back until its end.
    response.flushHeaders();
    let bytes = 0;
    const finish = (): void => {
      clearTimeout(timer);
      if (!response.writableEnded) this.#finish();
    };
    const timer = setTimeout(finish, lingerMs);
    request.on("end", finish).on("close", finish);
    request.on("data", (piece: Uint8Array) => {
      bytes += piece.byteLength;
      if (bytes > unreadBodyBytesMax) finish();
    });
  }

  #finish(): void {
    const response = this.#response;
    response.end();
    // An answer that waits behind others is still owed: it has no socket until its turn comes.
    if (response.socket === null && !this.#request.socket.destroyed) response.on("finish", () => this.#leave());
    else this.#leave();
    if (response.writableLength > 0) this.#watchReader();
  }

  /** Leaves unread what comes behind this request, which is complete, if the client has sent too many ahead. */
  #pauseReading(): void {
    const { socket } = this.#request;
    if (exchangesOn(socket).length <= this.#policy.requestsMax) return;
    // Not at once: behind each request node starts the socket again, in a tick of its own.
    queueMicrotask(() => {
      if (exchangesOn(socket).length > this.#policy.requestsMax) socket.pause();
    });
  }

  #leave(): void {
    const { socket } = this.#request;
    release(socket, this);
    if (exchangesOn(socket).length === this.#policy.requestsMax) socket.resume();
  }

  /**
   * Bounds how long a client may leave lie what is written for it, which is kept in memory meanwhile. The server
   * cuts it off when the time is over and something still waits.
   */
  #watchReader(): void {
    const { stallTimeoutMs } = this.#policy;
    if (stallTimeoutMs > 0) this.#request.socket.setTimeout(stallTimeoutMs);
  }

  #continued = false;

  #continue(): void {
    // RFC 9110 §10.1.1: only now that the body is wanted is the client told to send it.
    if (this.#continued || readField(this.fields, "expect")?.toLowerCase() !== "100-continue") return;
    this.#continued = true;
    if (this.httpVersion === "1.1") this.#response.writeContinue();
  }
}

// The exchanges of a connection whose answer is not complete: one, or more where a client sends ahead.
const exchangesKey: unique symbol = Symbol("exchanges");
type CarryingSocket = Socket & { [exchangesKey]?: Http1Exchange[] };

/** The exchanges that a connection is busy with, in the order of their requests. */
export function exchangesOn(socket: CarryingSocket): readonly Http1Exchange[] {
  return socket[exchangesKey] ?? [];
}

/** The latest of the exchanges that a connection is busy with, if any. */
export function exchangeOn(socket: CarryingSocket): Http1Exchange | undefined {
  return socket[exchangesKey]?.at(-1);
}

/** Has an exchange told when its connection closes, by one listener for all exchanges of the connection. */
function carry(socket: CarryingSocket, exchange: Http1Exchange): void {
  const carried = socket[exchangesKey];
  if (carried !== undefined) carried.push(exchange);
  else {
    socket[exchangesKey] = [exchange];
    socket.on("close", closeAll);
  }
}

/** Its answer is out, so that the connection's end is no news to it. */
function release(socket: CarryingSocket, exchange: Http1Exchange): void {
  const carried = socket[exchangesKey] ?? [];
  if (carried.at(-1) === exchange) carried.pop();
  else if (carried.includes(exchange)) carried.splice(carried.indexOf(exchange), 1);
}

function closeAll(this: CarryingSocket): void {
  for (const exchange of this[exchangesKey]?.splice(0) ?? []) exchange.closed();
}

/** The other end of a socket. */
export function peerOf(socket: Socket | undefined): Peer {
  return { address: socket?.remoteAddress ?? "", port: socket?.remotePort ?? 0 };
}

/** Joins the pieces of a body; a body in one piece is not copied. */
export function joinBytes(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, bytes);
}

/** RFC 9112 §6.3: without Transfer-Encoding and Content-Length a request has no body. */
function announcesBody(fields: HeaderFields): boolean {
  if (readField(fields, "transfer-encoding") !== null) return true;
  const length = readField(fields, "content-length");
  return length !== null && length !== "0";
}

function ignore(): void {}

const none: HeaderFields = [];
const ready = Promise.resolve();
const empty = new Uint8Array(0);

function toTuples(fields: HeaderFields): [string, string][] {
  const tuples: [string, string][] = [];
  for (let i = 0; i < fields.length; i += 2) tuples.push([fields[i] as string, fields[i + 1] as string]);
  return tuples;
}
