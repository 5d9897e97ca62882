import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { NodeHandler } from "@protoport/gateway";
import { runLater } from "@protoport/gateway/exchange";

type Response = Parameters<NodeHandler>[1];

/** 10 s give unary calls time to complete, and end before Kubernetes kills the process after 30 seconds. */
const closeTimeoutMsDefault = 10_000;

/** Milliseconds in which aborted calls can send their status. A handler that ignores its signal never sends one. */
const statusMsMax = 1_000;

/** Ends the calls of a mounted gateway when its application closes. */
export class CallCloser {
  readonly #closing = new AbortController();
  readonly #open = new Set<Response>();
  readonly #sockets = new WeakMap<object, Socket>();
  #isClosing = false;
  /** Called when no call is open. */
  #onIdle: (() => void) | undefined;
  /** Milliseconds after which calls are aborted. */
  readonly timeoutMs: number;
  /** The gateway's `shutdownSignal`. */
  readonly signal: AbortSignal;

  constructor(closeTimeoutMs: number | undefined, shutdownSignal: AbortSignal | undefined) {
    const { signal } = this.#closing;
    this.timeoutMs = closeTimeoutMs ?? closeTimeoutMsDefault;
    this.signal = shutdownSignal === undefined ? signal : AbortSignal.any([shutdownSignal, signal]);
  }

  /**
   * Calls a gateway's handler, and remembers the response until it closes or the request is passed on. When the
   * application closes, node waits for kept connections until their timeout, so each closes with its response.
   */
  serve(handler: NodeHandler, ...[request, response, next]: Required<Parameters<NodeHandler>>): void {
    this.#open.add(response);
    response.once("close", () => {
      const { socket } = request;
      const isServed = this.#open.delete(response);
      if (this.#open.size === 0) this.#onIdle?.();
      if (isServed && this.#isClosing && !("stream" in request)) socket.end(() => socket.destroy());
    });
    handler(request, response, (error) => {
      this.#open.delete(response);
      next(error);
    });
  }

  /** Remembers the sockets of a server's HTTP/2 sessions, because node hides them, also when a session only waits. */
  followConnections(server: EventEmitter): void {
    let connected: Socket | undefined;
    const keep = (socket: Socket): void => {
      connected = socket;
    };
    // Node creates a socket's session while it handles one of these events, the second with TLS.
    server.prependListener("connection", keep).prependListener("secureConnection", keep);
    server.on("session", (session: object) => {
      if (connected !== undefined) this.#sockets.set(session, connected);
    });
  }

  /** Aborts calls after the timeout, and closes the connections of calls that do not end then. */
  close(): void {
    this.#isClosing = true;
    runLater(this.timeoutMs, () => {
      const sessions = [...this.#open].flatMap((response) => ("stream" in response && response.stream.session) || []);
      const timer = setTimeout(() => {
        for (const response of this.#open) ("stream" in response ? response.stream : response).destroy();
        for (const session of sessions) this.#sockets.get(session)?.destroy();
      }, statusMsMax).unref();
      if (sessions.length === 0) this.#onIdle = () => clearTimeout(timer);
      this.#closing.abort(new ConnectError("the server is shutting down", Code.Unavailable));
      if (this.#open.size === 0) this.#onIdle?.();
    });
  }
}
