import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream, ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import {
  type Backlog,
  CommonHeaderFields,
  type HeaderFields,
  type Limits,
  checkRequestHead,
} from "../exchange/index.ts";
import type { CheckedConnection, HttpConnection, HttpServerOptions } from "../listen/index.ts";
import type { ExchangeOwner } from "./exchange.ts";
import { noFrameworkResponse } from "./framework-fields.ts";
import { NodeHttp2Exchange } from "./http2-exchange.ts";

/** A connection with a node:http2 session. */
export class NodeHttp2Connection implements HttpConnection, CheckedConnection, ExchangeOwner {
  /** Always false, because HTTP/2 announces the end of a connection with GOAWAY instead of the last response. */
  readonly isLast = false;
  readonly lingerMs: number = lingerMs;
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #options: HttpServerOptions;
  readonly #backlog: Backlog;
  /** The open streams, with the time when each stream was opened, in `performance.now()` milliseconds. */
  readonly #open = new Map<NodeHttp2Exchange, number>();
  /** Time when the last stream was closed, in `performance.now()` milliseconds. */
  #idleSinceMs = performance.now();

  /** @param onClose - called when the connection is closed and all streams have ended */
  constructor(socket: Socket, options: HttpServerOptions, onClose: (connection: NodeHttp2Connection) => void) {
    const { budget, limits } = options;
    this.#socket = socket;
    // Not half-open, because node:http2 would not detect that a client has closed its side.
    socket.allowHalfOpen = false;
    this.#options = options;
    // Loads node:http2 with the first connection, because loading adds 10 ms to the start.
    this.#session = process.getBuiltinModule("node:http2").performServerHandshake(socket, sessionOptions(limits));
    this.#session.setLocalWindowSize(Math.max(limits.connectionWindowBytes, windowBytesInitial));
    const bufferedBytes = (): number => this.#bufferedBytes();
    const sink = {
      get writableLength() {
        return bufferedBytes();
      },
    };
    this.#backlog = budget.open(sink, () => this.destroy());
    this.#session.on("stream", (stream, header, _flags, fields) => this.#begin(stream, header, fields));
    // Session errors are ignored, because the streams and the session emit "close" after an error.
    this.#session.on("error", ignore);
    this.#session.on("close", () => {
      this.#backlog.close();
      onClose(this);
    });
  }

  get busy(): boolean {
    return this.#open.size > 0;
  }

  get requests(): number {
    return this.#open.size;
  }

  /**
   * Closes the connection when all streams have ended. GOAWAY names the last processed stream (RFC 9113 §6.8). An
   * earlier GOAWAY cannot announce the close, because node:http2 serves no stream that is opened after a GOAWAY.
   */
  drain(): void {
    this.#session.close();
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

  onClosed(exchange: NodeHttp2Exchange): void {
    this.#open.delete(exchange);
    this.#backlog.count();
    this.#idleSinceMs = performance.now();
  }

  checkTimeouts(nowMs: number): void {
    const { idleTimeoutMs, requestTimeoutMs } = this.#options.limits;
    if (this.#backlog.stalledMs(nowMs) >= idleTimeoutMs) return this.destroy();
    for (const [exchange, openedAtMs] of this.#open) {
      if (exchange.body?.isAwaited === true && nowMs - openedAtMs >= requestTimeoutMs) exchange.cancel();
    }
    if (this.#open.size > 0) return;
    const idleMs = nowMs - this.#idleSinceMs;
    // After the session is closed, node waits until the client has read all bytes and closed its side.
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
      const exchange = new NodeHttp2Exchange(stream, header, fields, common, noFrameworkResponse, this);
      this.#open.set(exchange, performance.now());
      const authority = header[":authority"] ?? common.host;
      const target = checkRequestHead(exchange.httpMethod, exchange.target, authority, true, common.listBytes, limits);
      if (typeof target === "string") serve(exchange);
      else refuse(exchange, target);
    } catch (error) {
      this.destroy();
      // Errors in the gateway's own code belong to no call, so they are reported here.
      report(error, { errorCode: "ERR_CONNECTION_FAILED", what: "cannot serve an HTTP/2 connection" });
    }
  }

  #bufferedBytes(): number {
    let bytes = 0;
    for (const { bufferedBytes } of this.#open.keys()) bytes += bufferedBytes;
    return bytes;
  }
}

function sessionOptions(limits: Limits): ServerOptions {
  // Requests above `headerBytes` get status 431, and node resets requests above four times `headerBytes`.
  const maxHeaderListSize = limits.headerBytes * 4;
  return {
    // Allows as many fields as fit, because node's default of 128 would reset requests within the byte limit.
    maxHeaderListPairs: Math.ceil(maxHeaderListSize / fieldBytesMin),
    // Node refuses new streams above this memory. `backlogBytes` already limits the buffered bytes of all connections.
    maxSessionMemory: Math.max(sessionMegabytesMin, Math.ceil(limits.backlogBytes / 1e6)),
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize,
      initialWindowSize: streamWindowBytes,
    },
  };
}

function ignore(): void {}

/** Milliseconds in which the client must close its side. */
const lingerMs = 1000;
/** Size in bytes of the smallest header field (RFC 9113 §6.5.2). */
const fieldBytesMin = 33;
/** Node's default for `maxSessionMemory`, in megabytes (1,000,000 bytes). The memory for headers counts too. */
const sessionMegabytesMin = 10;
/** Receive window per stream, in bytes: 256 KiB. A message with this size takes one round trip. */
const streamWindowBytes = 256 * 1024;
/** Receive window of a new connection, in bytes. The window cannot be reduced (RFC 9113 §6.9.2). */
const windowBytesInitial = 65_535;
