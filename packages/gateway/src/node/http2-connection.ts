import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream, ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import {
  type Backlog,
  CommonHeaderFields,
  type HeaderFields,
  headerTooLarge,
  type HttpProblem,
  type Limits,
  readRequestTarget,
} from "../exchange/index.ts";
import type { CheckedConnection, HttpConnection, HttpServerOptions } from "../listen/index.ts";
import type { ExchangeOwner } from "./exchange.ts";
import { noHost } from "./host-fields.ts";
import { NodeHttp2Exchange } from "./http2-exchange.ts";

/** A connection whose streams are those of a session of node:http2. */
export class NodeHttp2Connection implements HttpConnection, CheckedConnection, ExchangeOwner {
  /** HTTP/2 has no last response: GOAWAY says which streams are served. */
  readonly isLast = false;
  readonly lingerMs: number = lingerMs;
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #options: HttpServerOptions;
  readonly #backlog: Backlog;
  /** The open streams, each with when it was opened, by `performance.now()`. */
  readonly #open = new Map<NodeHttp2Exchange, number>();
  /** Since when no stream is open, by `performance.now()`. */
  #idleSinceMs = performance.now();

  /** @param onClose - called when the connection is closed and all its streams have ended */
  constructor(socket: Socket, options: HttpServerOptions, onClose: (connection: NodeHttp2Connection) => void) {
    const { budget, limits } = options;
    this.#socket = socket;
    // As in a server of node:http2: it does not notice that a client has closed its side.
    socket.allowHalfOpen = false;
    this.#options = options;
    // Loaded for the first connection: it takes 10 ms to start.
    this.#session = process.getBuiltinModule("node:http2").performServerHandshake(socket, sessionOptions(limits));
    this.#session.setLocalWindowSize(connectionWindowBytes);
    const heldBytes = (): number => this.#heldBytes();
    const sink = {
      get writableLength() {
        return heldBytes();
      },
    };
    this.#backlog = budget.open(sink, () => this.destroy());
    this.#session.on("stream", (stream, header, _flags, fields) => this.#begin(stream, header, fields));
    // Followed by the close of its streams and of itself.
    this.#session.on("error", ignore);
    this.#session.on("close", () => {
      this.#backlog.close();
      onClose(this);
    });
  }

  get busy(): boolean {
    return this.#open.size > 0 || this.#socket.writableLength > 0;
  }

  get requests(): number {
    return this.#open.size;
  }

  /**
   * Closes the connection once its streams have ended. Its GOAWAY names the last of them, so that the client knows that
   * one that crosses it has not been processed (RFC 9113 §6.8). node:http2 serves no stream that is opened after a
   * GOAWAY, even if that names a higher one, so the end cannot be announced first.
   */
  drain(): void {
    if (!this.#session.closed) this.#session.close();
  }

  retire(): void {
    this.drain();
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  onWritten(): void {
    this.#backlog.count();
  }

  checkTimeouts(nowMs: number): void {
    const { idleTimeoutMs, requestTimeoutMs } = this.#options.limits;
    if (this.#backlog.stalledMs(nowMs) >= idleTimeoutMs) return this.destroy();
    for (const [exchange, openedAtMs] of this.#open) {
      if (exchange.body?.isAwaited === true && nowMs - openedAtMs >= requestTimeoutMs) exchange.cancel();
    }
    if (this.#open.size > 0) return;
    const idleMs = nowMs - this.#idleSinceMs;
    // Node waits for the client to close its side, and before that to read what is still to be sent.
    const timeoutMs = this.#session.destroyed ? lingerMs : idleTimeoutMs;
    if (idleMs < timeoutMs) return;
    if (this.#session.closed) return this.destroy();
    this.#session.close();
    this.#idleSinceMs = nowMs;
  }

  #begin(stream: ServerHttp2Stream, header: IncomingHttpHeaders, fields: HeaderFields): void {
    const { limits, serve, refuse, report } = this.#options;
    try {
      const common = new CommonHeaderFields(fields);
      const exchange = new NodeHttp2Exchange(stream, header, fields, common, noHost, this);
      this.#open.set(exchange, performance.now());
      stream.once("close", () => this.#forget(exchange));
      const target = readTarget(exchange, header, limits);
      if (typeof target === "string") serve(exchange, this.#socket);
      else refuse(exchange, target);
    } catch (error) {
      this.destroy();
      // A defect of ours that belongs to no call.
      report(error, { errorCode: "ERR_CONNECTION_FAILED", what: "HTTP/2 could not be served" });
    }
  }

  #forget(exchange: NodeHttp2Exchange): void {
    this.#open.delete(exchange);
    this.#backlog.count();
    this.#idleSinceMs = performance.now();
  }

  #heldBytes(): number {
    let bytes = 0;
    for (const { heldBytes } of this.#open.keys()) bytes += heldBytes;
    return bytes;
  }
}

function readTarget(
  { common, httpMethod, target }: NodeHttp2Exchange,
  header: IncomingHttpHeaders,
  limits: Limits,
): string | HttpProblem {
  if (common.listBytes > limits.headerBytes) return headerTooLarge(limits);
  return readRequestTarget(httpMethod, target, header[":authority"] ?? common.host, true, limits);
}

function sessionOptions(limits: Limits): ServerOptions {
  // Node resets what is larger; what is less than four times too large is answered 431.
  const maxHeaderListSize = limits.headerBytes * 4;
  return {
    // Its default, 128 fields, would reset requests that are within the limit.
    maxHeaderListPairs: Math.ceil(maxHeaderListSize / fieldBytesMin),
    // Node refuses new streams above it. The bytes of all connections are bounded by the budget.
    maxSessionMemory: Math.max(sessionMegabytesMin, Math.ceil(limits.backlogBytes / 1e6)),
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize,
      initialWindowSize: streamWindowBytes,
      enablePush: false,
    },
  };
}

function ignore(): void {}

/** Milliseconds for the client to close its side. */
const lingerMs = 1000;
/** Bytes of the smallest field (RFC 9113 §6.5.2). */
const fieldBytesMin = 33;
/** Megabytes (1,000,000 bytes) that node lets a session hold by default, headers included. */
const sessionMegabytesMin = 10;
/** Bytes that a stream may send before its reader takes them. 256 KiB: one round trip for such a message. */
const streamWindowBytes = 256 * 1024;
/** Bytes that all streams together may send before their readers take them. 1 MiB. */
const connectionWindowBytes = 1024 * 1024;
