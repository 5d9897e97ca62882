import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { BacklogBudget } from "../carriers/index.ts";
import { ClientConnection } from "../http2/client/index.ts";
import { errorName, type Http2Limits } from "../http2/index.ts";
import { ConnectBackoff } from "./connect-backoff.ts";
import { openSocket, type PreparedTls, prepareTls, type UpstreamTls } from "./open-socket.ts";
import type { UpstreamAddress } from "./upstream-address.ts";
import { toClientLimits, upstreamLimits } from "./upstream-limits.ts";

/** A call that wants a stream. */
export interface Caller {
  /** Called once, with a connection that has room: the stream must be opened before this returns. */
  begin(connection: ClientConnection): void;
  /** Called instead when there is none: `Unavailable`, or `ResourceExhausted` when too many calls wait. */
  fail(error: ConnectError): void;
}

/** Options of {@link Upstream}. */
export interface UpstreamOptions {
  readonly address: UpstreamAddress;
  readonly tls: UpstreamTls | undefined;
  /** Connections at most. */
  readonly connections: number;
  /** Milliseconds of silence, while calls wait, after which the server is sent a PING. */
  readonly keepaliveMs: number;
}

/**
 * The connections to one server. The first call opens one, and so does the first one after it was lost; another is
 * opened when all streams are taken. A server that cannot be reached is tried again by gRPC's rule, and until then calls
 * fail at once.
 */
export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #limits: Http2Limits;
  readonly #tls: PreparedTls | undefined;
  readonly #budget = new BacklogBudget(Number.POSITIVE_INFINITY);
  readonly #backoff = new ConnectBackoff();
  readonly #connections = new Set<ClientConnection>();
  readonly #waiting = new Set<Caller>();
  /** Those that take no more streams. */
  readonly #retired = new Set<ClientConnection>();
  /** What a new connection may be trusted with: as much as the last one. */
  #streamsBeforeSettings = upstreamLimits.streamsBeforeSettings;
  /** Gives up the connection that is being opened. */
  #giveUp: (() => void) | undefined;
  /** Why the last attempt failed. */
  #problem: ConnectError | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;

  /** @throws Error for certificates or keys that cannot be read */
  constructor(options: UpstreamOptions) {
    const { address, tls } = options;
    this.#options = options;
    this.#tls = address.scheme === "https" ? prepareTls(tls) : undefined;
    this.#limits = toClientLimits(options.keepaliveMs);
  }

  /** Gives a call a stream: at once, or when there is one. */
  call(caller: Caller): void {
    if (this.#closing !== undefined) return caller.fail(transportClosed());
    if (this.#budget.bytes > upstreamLimits.queuedBytes) {
      return caller.fail(new ConnectError("too many bytes wait to be sent", Code.ResourceExhausted));
    }
    for (const connection of this.#connections) if (connection.room > 0) return caller.begin(connection);
    if (this.#waiting.size >= upstreamLimits.waitingCalls) {
      return caller.fail(new ConnectError("too many calls wait for the server", Code.ResourceExhausted));
    }
    this.#waiting.add(caller);
    this.#connect();
  }

  /** Forgets a call that waits. */
  leave(caller: Caller): void {
    this.#waiting.delete(caller);
  }

  /**
   * Takes no more calls, fails those that wait for a stream, and resolves when the others have ended, or were ended
   * after {@link upstreamLimits.closeTimeoutMs}.
   */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      const connections = [...this.#connections, ...this.#retired];
      // Keeps the process alive, as the sockets do not: somebody may wait for the end.
      const timer = setTimeout(() => {
        for (const connection of connections) connection.destroy();
      }, upstreamLimits.closeTimeoutMs);
      this.#closed = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#failWaiting(transportClosed());
      this.#giveUp?.();
      for (const connection of connections) connection.drain();
      this.#tellClosed();
    });
    return this.#closing;
  }

  #tellClosed(): void {
    if (this.#connections.size + this.#retired.size === 0) this.#closed?.();
  }

  /** Opens a connection if calls wait for one. */
  #connect(): void {
    const { address, connections } = this.#options;
    if (this.#giveUp !== undefined || this.#closing !== undefined || this.#waiting.size === 0) return;
    if (this.#connections.size >= connections) return;
    if (this.#backoff.waits) {
      if (this.#connections.size === 0 && this.#problem !== undefined) this.#failWaiting(this.#problem);
      return;
    }
    const begunAtMs = performance.now();
    this.#giveUp = openSocket(address, this.#tls, upstreamLimits.connectTimeoutMs, (result) => {
      this.#giveUp = undefined;
      if (result instanceof Error) this.#failed(begunAtMs, result);
      else this.#opened(result, begunAtMs);
    });
  }

  #opened(socket: Socket, begunAtMs: number): void {
    let isReady = false;
    let reason: number | undefined;
    const connection = new ClientConnection(socket, {
      limits: this.#limits,
      budget: this.#budget,
      keepaliveMs: this.#options.keepaliveMs,
      streamsBeforeSettings: this.#streamsBeforeSettings,
      onReady: (streamsMax) => {
        isReady = true;
        // One at least: a server that takes none, and ends connections, would be connected to over and over.
        this.#streamsBeforeSettings = Math.max(1, Math.min(streamsMax, upstreamLimits.streamsBeforeSettings));
        this.#backoff.succeeded();
      },
      onRoom: () => this.#serve(connection),
      // So that a program whose calls are all answered can end.
      onBusy: (busy) => (busy ? socket.ref() : socket.unref()),
      onRetired: (code) => {
        reason = code;
        this.#connections.delete(connection);
        this.#retired.add(connection);
        // Not from here: it is told in the middle of a frame.
        queueMicrotask(() => this.#connect());
      },
      onError: (_scope, code) => {
        reason = code;
      },
      onClose: () => {
        this.#connections.delete(connection);
        this.#retired.delete(connection);
        this.#tellClosed();
        if (isReady) this.#connect();
        else this.#failed(begunAtMs, new Error(`the server does not answer in HTTP/2${named(reason)}`));
      },
      // A defect of ours: its call has failed already.
      onFault: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    });
    this.#connections.add(connection);
    this.#serve(connection);
    // The calls that it was opened for may have been given up.
    if (!connection.busy) socket.unref();
  }

  #failed(begunAtMs: number, cause: Error): void {
    this.#backoff.failed(begunAtMs);
    const { authority } = this.#options.address;
    const message = `cannot connect to ${authority}: ${cause.message}`;
    this.#problem = new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
    if (this.#connections.size === 0) this.#failWaiting(this.#problem);
  }

  #serve(connection: ClientConnection): void {
    for (const caller of this.#waiting) {
      if (connection.room <= 0) return this.#connect();
      this.#waiting.delete(caller);
      caller.begin(connection);
    }
  }

  #failWaiting({ rawMessage, code, cause }: ConnectError): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    // An error for each: code that catches it may change its metadata.
    for (const caller of waiting) caller.fail(new ConnectError(rawMessage, code, undefined, undefined, cause));
  }
}

function transportClosed(): ConnectError {
  return new ConnectError("the transport is closed", Code.Unavailable);
}

function named(code: number | undefined): string {
  return code === undefined || code === 0 ? "" : ` (${errorName(code)})`;
}
