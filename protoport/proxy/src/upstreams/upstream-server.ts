import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { ConnectBackoff } from "./connect-backoff.ts";
import { openSocket } from "./open-socket.ts";
import { nameAddress, type UpstreamAddress } from "./upstream-address.ts";
import { type ServerSettings, UpstreamConnection } from "./upstream-connection.ts";

/** The {@link UpstreamServer} events. */
export interface ServerEvents {
  /** Called when a connection has free streams. */
  onStreamAvailable(connection: UpstreamConnection): void;
  /** Called when calls may have to be queued or fail, because streams or connections were lost. */
  onChange(): void;
  /** Called when the first connection is established. */
  onConnected(): void;
  /** Called when the server may be lost, because the first or the last connection was closed. */
  onLost(): void;
  /** Called when a connection is closed. */
  onClosed(): void;
}

/**
 * The connections to one server. {@link connect} opens the first connection. {@link grow} opens additional connections
 * when calls find no free stream. Failed attempts are retried after gRPC's backoff.
 */
export class UpstreamServer implements ServerLoad {
  readonly #address: UpstreamAddress;
  readonly #settings: ServerSettings;
  readonly #events: ServerEvents;
  readonly #backoff = new ConnectBackoff();
  /** A separate backoff, so that refused additional connections do not delay the first connection. */
  readonly #additionalBackoff = new ConnectBackoff();
  readonly #connections = new Set<UpstreamConnection>();
  /** The functions that cancel pending attempts to connect. */
  readonly #openings = new Set<() => void>();
  /** Maximum streams before SETTINGS arrive on a new connection, as many as the server allowed on the last one. */
  #streamsBeforeSettings: number;
  /** Whether the last connection was never established, or was lost because the server was frozen. */
  #isUnresponsive = false;
  /** The error from the last attempt to connect, or `undefined` if the attempt succeeded. */
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

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Whether the server gets calls. */
  get isServing(): boolean {
    return this.#hasConnection(({ isServing }) => isServing);
  }

  /** Whether a connection is being established. */
  get isPending(): boolean {
    return (
      this.#openings.size > 0 || this.#hasConnection(({ isEstablished, isRetired }) => !isEstablished && !isRetired)
    );
  }

  /** Whether {@link connect} opens a connection now. */
  get mayConnect(): boolean {
    if (this.#openings.size > 0 || this.#backoff.isWaiting) return false;
    return !this.#isActive;
  }

  get #isActive(): boolean {
    return this.#hasConnection(({ isRetired }) => !isRetired);
  }

  /** Returns the first connection with a free stream, so that additional connections become idle after a burst. */
  findConnection(): UpstreamConnection | undefined {
    for (const connection of this.#connections) if (connection.availableStreams > 0) return connection;
    return undefined;
  }

  /** Opens the first connection if {@link mayConnect}. */
  connect(): void {
    if (this.mayConnect) this.#open(this.#backoff);
  }

  /**
   * Opens additional connections for calls that found no free stream. The number of connections at most doubles per
   * round trip, so that no more connections are opened than the server's SETTINGS require. No connection is opened
   * while the server allows no streams.
   *
   * @returns how many streams pending connections are expected to provide
   */
  grow(calls: number): number {
    let open = this.#openings.size;
    let established = 0;
    let streams = 0;
    for (const { http2, isEstablished, isRetired } of this.#connections) {
      // A closing connection that was never established counts as open, because its backoff starts after the close.
      if (isRetired && isEstablished) continue;
      open++;
      if (!isEstablished) continue;
      established++;
      streams = Math.max(streams, http2.maxStreams);
    }
    if (streams === 0) return 0;
    let pending = open - established;
    const target = Math.min(Math.ceil(calls / streams), established);
    for (
      ;
      pending < target && open < this.#settings.connections && !this.#additionalBackoff.isWaiting;
      pending++, open++
    ) {
      this.#open(this.#additionalBackoff);
    }
    return pending * streams;
  }

  /** Accepts no more calls, and lets calls in flight finish. */
  drain(): void {
    for (const cancel of this.#openings) cancel();
    for (const { http2 } of this.#connections) http2.drain();
  }

  /** Closes the remaining connections immediately. */
  destroy(): void {
    for (const { http2 } of this.#connections) http2.destroy();
  }

  #hasConnection(matches: (connection: UpstreamConnection) => boolean): boolean {
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
    const isAdditional = this.#isActive;
    // An additional connection gets calls only after SETTINGS, because a load balancer at its limit may accept a
    // connection and then close it. A frozen server's kernel accepts connections too, so `#isUnresponsive` also waits.
    const awaitsSettings = isAdditional || this.#isUnresponsive;
    const start = { isAdditional, streamsBeforeSettings: awaitsSettings ? 0 : this.#streamsBeforeSettings };
    const connection = new UpstreamConnection(socket, this.#address, this.#settings, start, {
      onEstablished: (maxStreams) => {
        // At least one stream, so that a server that allows no streams and closes its connections is not reconnected in
        // a loop.
        const { streamsBeforeSettings } = this.#settings.limits;
        this.#streamsBeforeSettings = Math.max(1, Math.min(maxStreams, streamsBeforeSettings));
        this.#isUnresponsive = false;
        backoff.succeeded();
        this.problem = undefined;
        if (!isAdditional) this.#events.onConnected();
      },
      onStreamAvailable: () =>
        connection.availableStreams > 0 ? this.#events.onStreamAvailable(connection) : this.#events.onChange(),
      onClosed: (_, problem) => {
        this.#connections.delete(connection);
        if (problem !== undefined || connection.http2.isUnresponsive) this.#isUnresponsive = true;
        if (problem !== undefined) this.#failed(backoff, begunAtMs, problem);
        // Additional connections also close when idle, which does not mean that the server is lost.
        if (!isAdditional || !this.#isActive) this.#events.onLost();
        this.#events.onClosed();
      },
    });
    this.#connections.add(connection);
    if (connection.availableStreams > 0) this.#events.onStreamAvailable(connection);
    // An unused connection must not keep the process running: its calls may have been cancelled.
    if (!connection.http2.busy) socket.unref();
  }

  #failed(backoff: ConnectBackoff, begunAtMs: number, cause: Error): void {
    backoff.failed(begunAtMs);
    const message = `cannot connect to ${nameAddress(this.#address)}: ${cause.message}`;
    this.problem = new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
    this.#events.onChange();
  }
}

/** A server that can get calls. */
interface ServerLoad {
  /** How many calls are in flight to the server. */
  readonly calls: number;
}

/**
 * Returns the less loaded of two random servers ("The Power of Two Choices"). The load is distributed nearly as evenly
 * as with the least loaded server. Only two servers are checked, and clients do not all pick the same server.
 */
export function pickServer<Server extends ServerLoad>(servers: readonly Server[]): Server | undefined {
  const count = servers.length;
  if (count < 2) return servers[0];
  const first = Math.trunc(Math.random() * count);
  // The second server is any server except the first, with uniform probability.
  const second = (first + 1 + Math.trunc(Math.random() * (count - 1))) % count;
  const [one, other] = [servers[first], servers[second]];
  return one !== undefined && other !== undefined && one.calls > other.calls ? other : one;
}
