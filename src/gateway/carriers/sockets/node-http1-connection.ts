import type { Socket } from "node:net";
import type { Backlog, BacklogBudget } from "../../http2/index.ts";
import type { HeaderFields } from "../index.ts";
import type { NodeHttp1Exchange } from "./node-http1-exchange.ts";

/** How an HTTP/1.1 server treats its connections. */
export interface ConnectionPolicy {
  /** Whether the server is draining, so that a connection ends with its next answer. */
  draining: boolean;
  /** Milliseconds for which a client may take none of what waits for it; 0 for ever. */
  readonly stallTimeoutMs: number;
  /** Milliseconds for which a connection is read after its last answer while its client still sends. */
  readonly lingerMs: number;
  /** Requests that may be in progress; further ones wait. */
  readonly requestsMax: number;
  /** Counts the bytes that clients do not take; `undefined` for connections of a server that is not ours. */
  readonly budget: BacklogBudget | undefined;
  /** Fields that announce how long the connection is kept; empty where node announces it, or nobody does. */
  readonly keepAlive: HeaderFields;
}

/**
 * A connection of node:http: the exchanges in progress, of which there are several when its client pipelines requests,
 * and the bytes that they hold.
 */
export class NodeHttp1Connection {
  readonly policy: ConnectionPolicy;
  /** Set when no request after the latest is processed (RFC 9112 §9.6). */
  ended = false;
  /** The latest exchange in progress. */
  latest: NodeHttp1Exchange | undefined;
  readonly #socket: Socket;
  readonly #backlog: Backlog | undefined;
  /** Exchanges whose answers have not been sent yet, in the order of their requests. */
  readonly #exchanges: NodeHttp1Exchange[] = [];
  /** Starts the latest of them, which have to wait. */
  readonly #postponed: (() => void)[] = [];
  #answerBytes = 0;
  #isBeginning = false;

  constructor(socket: Socket, policy: ConnectionPolicy) {
    this.policy = policy;
    this.#socket = socket;
    this.#backlog = policy.budget?.open(() => socket.destroy());
    socket.on("close", () => this.#close());
  }

  /** The number of exchanges in progress. */
  get size(): number {
    return this.#exchanges.length;
  }

  /**
   * Adds an exchange. It is told when the connection closes, unless it was released before.
   *
   * @returns whether it may begin; otherwise it waits until others are answered and their answers taken
   */
  carry(exchange: NodeHttp1Exchange): boolean {
    this.latest = exchange;
    if (this.#exchanges.push(exchange) > 1) this.#backlog?.add(waitingRequestBytes);
    return this.#postponed.length === 0 && !this.#isFullFor(this.#exchanges.length);
  }

  /** Keeps the latest exchange waiting, and stops reading from the socket. */
  postpone(begin: () => void): void {
    this.#postponed.push(begin);
    // Not now: after each request node resumes the socket in a tick of its own.
    queueMicrotask(() => {
      if (this.#postponed.length > 0) this.#socket.pause();
    });
  }

  /** Adds to the bytes of answers that wait to be taken; negative when some were taken. */
  hold(bytes: number): void {
    this.#answerBytes += bytes;
    if (bytes > 0) this.#backlog?.add(bytes);
    else this.#backlog?.remove(-bytes);
  }

  /** Removes an exchange whose answer has been sent. */
  release(exchange: NodeHttp1Exchange): void {
    const at = this.#exchanges.lastIndexOf(exchange);
    if (at < 0) return;
    this.#exchanges.splice(at, 1);
    this.latest = this.#exchanges.at(-1);
    if (this.#exchanges.length > 0) this.#backlog?.remove(waitingRequestBytes);
    if (this.#postponed.length > 0 && !this.#isBeginning) this.#beginPostponed();
  }

  /** Ends the connection after the answer to the latest request, whose client may still be sending. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    lingerAtEnd(this.#socket, this.policy.lingerMs);
  }

  #isFullFor(requests: number): boolean {
    return requests > this.policy.requestsMax || this.#answerBytes > answerBytesMax;
  }

  #beginPostponed(): void {
    // A request that begins may be answered at once, and so come back here.
    this.#isBeginning = true;
    while (this.#postponed.length > 0 && !this.#isFullFor(this.#exchanges.length - this.#postponed.length + 1)) {
      this.#postponed.shift()?.();
    }
    this.#isBeginning = false;
    if (this.#postponed.length === 0) this.#socket.resume();
  }

  #close(): void {
    this.#backlog?.close();
    this.#postponed.length = 0;
    for (const exchange of this.#exchanges.splice(0)) exchange.closed();
  }
}

/** Returns the connection of a socket, created with this policy by the first caller. */
export function connectionOn(socket: Socket, policy: ConnectionPolicy): NodeHttp1Connection {
  let connection = connections.get(socket);
  if (connection === undefined) connections.set(socket, (connection = new NodeHttp1Connection(socket, policy)));
  return connection;
}

/** Returns how many requests on the connection still wait for their answers. */
export function requestsOn(socket: Socket): number {
  return connections.get(socket)?.size ?? 0;
}

const connections = new WeakMap<Socket, NodeHttp1Connection>();

/** Bytes that node holds of a request whose answer waits for others, and so the price of one that was read ahead. */
// 2.7 KB measured on node 26, and our own.
const waitingRequestBytes = 3 * 1024;

/** Bytes of answers that a client has not taken, above which its further requests wait. */
// 1 MiB, as HTTP/2 holds of the bodies of a connection.
const answerBytesMax = 1024 * 1024;

/** Milliseconds for which a connection is read after its last answer. */
// Half a minute, as in nginx: 64 MiB at 18 Mbit/s, and less than an idle connection has anyway.
export const http1LingerMs = 30_000;

/** Bytes that are read, and dropped, after the last answer of a connection. */
// 64 MiB: clients send such bodies in one go, and dropping one costs as much as a few hundred calls.
const lingerBytesMax = 64 * 1024 * 1024;

/**
 * Makes a connection of node:http with an unread request read and drop the rest of it after its last answer.
 *
 * Closing a socket with unread bytes resets the connection, and many clients read their answer only after sending
 * everything: they would lose it. So we end only our own side, and wait until the client ends its own (RFC 9112 §9.6)
 * or has used up its time or bytes.
 */
function lingerAtEnd(socket: Socket, forMs: number): void {
  // node:http calls this, too, after the last answer.
  socket.destroySoon = () => {
    socket.destroySoon = ignore;
    const bytesReadMax = socket.bytesRead + lingerBytesMax;
    // Nothing is parsed any more: further requests must not be processed.
    socket.removeAllListeners("data");
    socket.on("data", () => {
      if (socket.bytesRead > bytesReadMax) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), forMs);
    socket.on("close", () => clearTimeout(timer));
    socket.resume().end();
  };
}

function ignore(): void {}
