import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  authorityOf,
  clientGoneProblem,
  type CommonHeaderFields,
  type HeaderFields,
  type HttpProblem,
  maxLingerBytes,
  maxLingerMs,
  type Peer,
  readHeaderField,
  maxUnreadBodyBytes,
} from "../exchange/index.ts";
import { keyOf, NodeExchange, peerOf, withFrameworkFields } from "./exchange.ts";

/** An exchange on node:http. The program's server handles the connection and its timeouts. */
export class NodeHttp1Exchange extends NodeExchange {
  readonly httpVersion: "1.0" | "1.1";
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** Whether the request has `Expect: 100-continue`. The framework's server may already have sent 100 (Continue). */
  readonly #expectsContinue: boolean;
  /** The body length in the header, or 0 if the length is unknown. */
  readonly #bodyBytes: number;
  /** Whether this exchange has sent 100 (Continue). */
  #isContinued = false;

  /** @param target - the request target in origin form */
  constructor(request: IncomingMessage, response: ServerResponse, target: string, common: CommonHeaderFields) {
    const scheme = "encrypted" in request.socket ? "https" : "http";
    // Without Transfer-Encoding and Content-Length a request has no body (RFC 9112 §6.3).
    const bodyBytes = common.transferEncoding === null ? Number(common.contentLength ?? 0) || undefined : 0;
    const url = `${scheme}://${authorityOf(request.url ?? "", common.host)}${target}`;
    const { method: httpMethod = "", rawHeaders: fields } = request;
    super(request, response, { httpMethod, target, url, fields, common }, bodyBytes);
    this.httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
    this.#bodyBytes = bodyBytes ?? 0;
    this.#request = request;
    this.#response = response;
    this.#expectsContinue = this.httpVersion === "1.1" && common.expect?.toLowerCase() === "100-continue";
  }

  get connection(): object {
    return keyOf(this.#request.socket);
  }

  get peer(): Peer {
    return peerOf(this.#request.socket);
  }

  override startBody(): void {
    if (this.#expectsContinue && this.httpStatus === 0 && pendingContinue.delete(this.#response)) {
      this.#isContinued = true;
      this.#response.writeContinue();
    }
    super.startBody();
  }

  override isWholeBody(piece: Uint8Array): boolean {
    return piece.byteLength === this.#bodyBytes;
  }

  protected sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    const hasLength = trailer === undefined && body !== undefined;
    this.#writeHeader(httpStatus, hasLength ? [...fields, "content-length", String(body.byteLength)] : fields);
    if (!hasLength) {
      if (body !== undefined) this.#response.write(body);
      this.sendEnd(trailer);
    } else if (body.byteLength > maxJoinedBodyBytes) this.#response.end(body);
    // Node joins the header with a string, but writes a Buffer as a separate piece.
    else this.#response.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1"), "latin1");
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#writeHeader(httpStatus, fields);
    this.#response.flushHeaders();
  }

  protected sendEnd(trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#response.addTrailers(toTuples(trailer));
    this.#response.end();
  }

  protected sendReset(): void {
    // HTTP/1.1 has no other way to mark a body as incomplete (RFC 9112 §8).
    this.#request.socket.destroy();
  }

  protected closeProblem(): HttpProblem {
    return clientGoneProblem();
  }

  #writeHeader(httpStatus: number, fields: HeaderFields): void {
    const header = withFrameworkFields(this.#response, [...fields, ...this.addedFields]);
    if (!this.#canKeepAlive()) {
      lingerOnClose(this.#request.socket);
      if (readHeaderField(header, "connection") === null) header.push("connection", "close");
    }
    // Removes the framework's fields, which node would otherwise add to the fields below.
    for (const name of this.#response.getHeaderNames()) this.#response.removeHeader(name);
    this.#response.writeHead(httpStatus, header);
  }

  /** Returns whether the connection can be reused, because the rest of the body is small enough to read and drop. */
  #canKeepAlive(): boolean {
    if (requestsUpgrade(this.fields)) return false;
    // Over HTTP/1.0, a body with Transfer-Encoding has no known end (RFC 9112 §6.1).
    if (this.httpVersion === "1.0" && this.common.transferEncoding !== null) return false;
    if (this.#request.complete || this.body?.ended === true) return true;
    // Without 100 (Continue), the client may send or omit its body. The framework's 100 (Continue) is not detectable.
    if (this.#expectsContinue && !this.#isContinued) return false;
    if (this.body === undefined) return true;
    const { contentLength } = this.common;
    return contentLength !== null && Number(contentLength) <= maxUnreadBodyBytes;
  }
}

/** Maximum bytes in a body that is joined with the header. Copying a larger body costs more than a second write. */
const maxJoinedBodyBytes = 4096;

/** Responses for which 100 (Continue) must be sent before the body is read. */
const pendingContinue = new WeakSet<object>();

/**
 * Makes the gateway send 100 (Continue) when reading of the request body begins (RFC 9110 §10.1.1). Call this function
 * in listeners for `checkContinue`. If node:http emits `request` instead, node:http has already sent 100 (Continue).
 */
export function continueWhenRead(response: object): void {
  pendingContinue.add(response);
}

function toTuples(fields: HeaderFields): [string, string][] {
  const tuples: [string, string][] = [];
  for (let i = 0; i < fields.length; i += 2) tuples.push([fields[i] ?? "", fields[i + 1] ?? ""]);
  return tuples;
}

/** Returns whether node's parser treats a request as a request for a protocol upgrade (RFC 9110 §7.8). */
export function requestsUpgrade(fields: HeaderFields): boolean {
  // Checks Upgrade before Connection, because few requests have an Upgrade field.
  return (
    Boolean(readHeaderField(fields, "upgrade")) && /\bupgrade\b/i.test(readHeaderField(fields, "connection") ?? "")
  );
}

/**
 * Drops all bytes that arrive on a node:http connection after a request. After an upgrade request, node's parser drops
 * the rest of the read, and parses the next read as a new request. The next read may begin in another request's body,
 * so that node could execute a body as a request.
 */
export function stopReadingAfter(request: IncomingMessage): void {
  const { socket } = request;
  const listeners = socket.listeners("data");
  // Without the "data" listener, node's parser also stops reading directly from the handle.
  socket.removeAllListeners("data");
  socket.on("data", (piece) => {
    if (!request.complete) for (const listener of listeners) Reflect.apply(listener, socket, [piece]);
  });
}

const lingeringSockets = new WeakSet<Socket>();

/**
 * Makes a node:http connection read and drop the rest of its last request after the response.
 *
 * Closing a socket with unread bytes resets the connection, and a client that reads only after sending the whole
 * request would lose the response. So only the server's side is closed first. The socket is closed when the client
 * closes its side (RFC 9112 §9.6) or reaches the byte limit, or after {@link maxLingerMs} milliseconds.
 */
function lingerOnClose(socket: Socket): void {
  lingeringSockets.add(socket);
  // node:http calls `destroySoon` after the last response.
  socket.destroySoon = () => {
    socket.destroySoon = ignore;
    const maxBytesRead = socket.bytesRead + maxLingerBytes;
    // Stops node's parser, because further requests must not be processed.
    socket.removeAllListeners("data");
    socket.on("data", () => {
      if (socket.bytesRead > maxBytesRead) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), maxLingerMs);
    socket.on("close", () => clearTimeout(timer));
    socket.resume().end();
  };
}

/** Returns whether {@link lingerOnClose} was called. The last response was then written, but perhaps not sent. */
export function willClose(socket: Socket): boolean {
  return lingeringSockets.has(socket);
}

function ignore(): void {}
