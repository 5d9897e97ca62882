import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { ConnectBackoff } from "./connect-backoff.ts";
import { openSocket } from "./open-socket.ts";
import type { ServerLoad } from "./pick-server.ts";
import { nameAddress, type UpstreamAddress } from "./upstream-address.ts";
import { type ServerSettings, UpstreamConnection } from "./upstream-connection.ts";

/** The events of an {@link UpstreamServer}. */
export interface ServerEvents {
  /** Called when a connection has free streams. */
  onStreamAvailable(connection: UpstreamConnection): void;
  /** Called when it may have become impossible to get a free stream. */
  onChange(): void;
  /** Called when the first connection is established. */
  onConnected(): void;
  /** Called when a connection is closed, except for an additional one while others are active. */
  onLost(): void;
  /** Called when a connection is closed. */
  onClosed(): void;
}

/**
 * The connections to one server. The first is opened on request, additional ones when calls find no free stream. A server
 * that cannot be reached is retried after gRPC's backoff.
 */
export class UpstreamServer implements ServerLoad {
  readonly #address: UpstreamAddress;
  readonly #settings: ServerSettings;
  readonly #events: ServerEvents;
  readonly #backoff = new ConnectBackoff();
  /** For additional connections. A server may refuse only those, which must not delay the first connection. */
  readonly #surplusBackoff = new ConnectBackoff();
  readonly #connections = new Set<UpstreamConnection>();
  /** Functions that cancel connections being opened. */
  readonly #openings = new Set<() => void>();
  /** Streams that a new connection may open before SETTINGS: as many as the last connection allowed. */
  #streamsBeforeSettings: number;
  /** Why the last attempt to connect failed; `undefined` if it succeeded. */
  problem: ConnectError | undefined;

  constructor(address: UpstreamAddress, settings: ServerSettings, events: ServerEvents) {
    this.#address = address;
    this.#settings = settings;
    this.#events = events;
    this.#streamsBeforeSettings = settings.limits.streamsBeforeSettings;
  }

  get calls(): number {
    let calls = 0;
    for (const { http2 } of this.#connections) calls += http2.calls;
    return calls;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Whether it gets calls. */
  get isServing(): boolean {
    return this.#some(({ isServing }) => isServing);
  }

  /** Whether a connection is being established. */
  get isPending(): boolean {
    return this.#openings.size > 0 || this.#some(({ isEstablished, isRetired }) => !isEstablished && !isRetired);
  }

  /** Whether {@link connect} opens a connection now. */
  get mayConnect(): boolean {
    if (this.#openings.size > 0 || this.#backoff.isWaiting) return false;
    return !this.#isActive;
  }

  get #isActive(): boolean {
    return this.#some(({ isRetired }) => !isRetired);
  }

  /** Returns the first connection with a free stream, so that additional ones become idle after a burst. */
  findConnection(): UpstreamConnection | undefined {
    for (const connection of this.#connections) if (connection.availableStreams > 0) return connection;
    return undefined;
  }

  /** Opens the first connection if it {@link mayConnect}. */
  connect(): void {
    if (this.mayConnect) this.#open(this.#backoff);
  }

  /**
   * Opens additional connections for calls that found no free stream. The number at most doubles per round trip, so that no
   * more are opened than the SETTINGS of the server require, and none while it allows no streams.
   *
   * @returns the number of calls that the connections being opened will have streams for
   */
  grow(calls: number): number {
    let open = this.#openings.size;
    let established = 0;
    let streams = 0;
    for (const { http2, isEstablished, isRetired } of this.#connections) {
      // One that is closing before it was established still counts: the backoff starts when it is closed.
      if (isRetired && isEstablished) continue;
      open++;
      if (!isEstablished) continue;
      established++;
      streams = Math.max(streams, http2.streamsMax);
    }
    if (streams === 0) return 0;
    let pending = open - established;
    const target = Math.min(Math.ceil(calls / streams), established);
    for (
      ;
      pending < target && open < this.#settings.connections && !this.#surplusBackoff.isWaiting;
      pending++, open++
    ) {
      this.#open(this.#surplusBackoff);
    }
    return pending * streams;
  }

  /** Accepts no more calls, and lets those in flight finish. */
  drain(): void {
    for (const cancel of this.#openings) cancel();
    for (const { http2 } of this.#connections) http2.drain();
  }

  /** Closes the remaining connections immediately. */
  destroy(): void {
    for (const { http2 } of this.#connections) http2.destroy();
  }

  #some(matches: (connection: UpstreamConnection) => boolean): boolean {
    for (const connection of this.#connections) if (matches(connection)) return true;
    return false;
  }

  #open(backoff: ConnectBackoff): void {
    const { tls, limits } = this.#settings;
    const begunAtMs = performance.now();
    const cancel = openSocket(this.#address, tls, limits.connectTimeoutMs, (result) => {
      this.#openings.delete(cancel);
      if (result instanceof Error) this.#failed(backoff, begunAtMs, result);
      else this.#opened(result, backoff, begunAtMs);
    });
    this.#openings.add(cancel);
  }

  #opened(socket: Socket, backoff: ConnectBackoff, begunAtMs: number): void {
    const isSurplus = this.#isActive;
    // An additional one is used once SETTINGS arrive: a load balancer at its limit accepts and then closes it.
    const start = { isSurplus, streamsBeforeSettings: isSurplus ? 0 : this.#streamsBeforeSettings };
    const connection = new UpstreamConnection(socket, this.#address, this.#settings, start, {
      onEstablished: (streamsMax) => {
        // At least one: otherwise a server that allows none and closes connections would be connected to in a loop.
        const { streamsBeforeSettings } = this.#settings.limits;
        this.#streamsBeforeSettings = Math.max(1, Math.min(streamsMax, streamsBeforeSettings));
        backoff.succeeded();
        this.problem = undefined;
        if (!isSurplus) this.#events.onConnected();
      },
      onStreamAvailable: () =>
        connection.availableStreams > 0 ? this.#events.onStreamAvailable(connection) : this.#events.onChange(),
      onClosed: (_, problem) => {
        this.#connections.delete(connection);
        if (problem !== undefined) this.#failed(backoff, begunAtMs, problem);
        // Closing an idle additional connection does not mean that the server is lost.
        if (!isSurplus || !this.#isActive) this.#events.onLost();
        this.#events.onClosed();
      },
    });
    this.#connections.add(connection);
    if (connection.availableStreams > 0) this.#events.onStreamAvailable(connection);
    // The calls that it was opened for may have been cancelled.
    if (!connection.http2.busy) socket.unref();
  }

  #failed(backoff: ConnectBackoff, begunAtMs: number, cause: Error): void {
    backoff.failed(begunAtMs);
    const message = `cannot connect to ${nameAddress(this.#address)}: ${cause.message}`;
    this.problem = new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
    this.#events.onChange();
  }
}
