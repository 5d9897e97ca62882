import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { ConnectBackoff } from "./connect-backoff.ts";
import { openSocket } from "./open-socket.ts";
import type { Loaded } from "./pick-server.ts";
import { nameAddress, type UpstreamAddress } from "./upstream-address.ts";
import { type ServerSettings, UpstreamConnection } from "./upstream-connection.ts";

/** The reports of an {@link UpstreamServer}. */
export interface ServerEvents {
  /** Called when a connection may have room for calls. */
  onRoom(connection: UpstreamConnection): void;
  /** Called when there may be no hope of room any more. */
  onChange(): void;
  /** Called when the first connection is known to be of use. */
  onConnected(): void;
  /** Called when a connection is over, unless it was one of several. */
  onLost(): void;
  /** Called when a connection is over. */
  onClosed(): void;
}

/**
 * The connections to one server: the first one is opened when it is asked for, further ones as calls find no room. If it
 * cannot be reached, it is left alone for as long as gRPC's rule says.
 */
export class UpstreamServer implements Loaded {
  readonly #address: UpstreamAddress;
  readonly #settings: ServerSettings;
  readonly #events: ServerEvents;
  readonly #backoff = new ConnectBackoff();
  /** Of connections in addition to others. A server may refuse these alone, and must not be left alone for that. */
  readonly #surplusBackoff = new ConnectBackoff();
  readonly #connections = new Set<UpstreamConnection>();
  /** Gives up each connection that is being opened. */
  readonly #openings = new Set<() => void>();
  /** What a new connection may be trusted with: as much as the last one. */
  #streamsBeforeSettings: number;
  /** Why the last attempt to reach it failed; `undefined` if it did not. */
  problem: ConnectError | undefined;

  constructor(address: UpstreamAddress, settings: ServerSettings, events: ServerEvents) {
    this.#address = address;
    this.#settings = settings;
    this.#events = events;
    this.#streamsBeforeSettings = settings.limits.streamsBeforeSettings;
  }

  get calls(): number {
    let calls = 0;
    for (const { carrier } of this.#connections) calls += carrier.calls;
    return calls;
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Whether calls are given to it. */
  get isServing(): boolean {
    return this.#some(({ isServing }) => isServing);
  }

  /** Whether it will be known soon if calls are given to it. */
  get isPending(): boolean {
    return this.#openings.size > 0 || this.#some(({ isKnown, isRetired }) => !isKnown && !isRetired);
  }

  /** Whether {@link connect} opens a connection now. */
  get mayConnect(): boolean {
    if (this.#openings.size > 0 || this.#backoff.waits) return false;
    return !this.#isActive;
  }

  get #isActive(): boolean {
    return this.#some(({ isRetired }) => !isRetired);
  }

  /** Returns a connection with room for a call: the first one, so that those of a burst are idle after it. */
  findRoom(): UpstreamConnection | undefined {
    for (const connection of this.#connections) if (connection.room > 0) return connection;
    return undefined;
  }

  /** Opens the first connection if it {@link mayConnect}. */
  connect(): void {
    if (this.mayConnect) this.#open(this.#backoff);
  }

  /**
   * Opens further connections for calls that have found no room. Together they at most double in a round trip, so that
   * no more are opened than the server's SETTINGS ask for, and none while it takes no streams at all.
   *
   * @returns how many calls will find room on those that are being opened
   */
  grow(calls: number): number {
    let open = this.#openings.size;
    let known = 0;
    let streams = 0;
    for (const { carrier, isKnown, isRetired } of this.#connections) {
      // One that ends before it was of use still counts: once it is closed, the back-off begins.
      if (isRetired && isKnown) continue;
      open++;
      if (!isKnown) continue;
      known++;
      streams = Math.max(streams, carrier.streamsMax);
    }
    if (streams === 0) return 0;
    let pending = open - known;
    const wanted = Math.min(Math.ceil(calls / streams), known);
    for (; pending < wanted && open < this.#settings.connections && !this.#surplusBackoff.waits; pending++, open++) {
      this.#open(this.#surplusBackoff);
    }
    return pending * streams;
  }

  /** Takes no more calls, and lets those that it has end. */
  drain(): void {
    for (const giveUp of this.#openings) giveUp();
    for (const { carrier } of this.#connections) carrier.drain();
  }

  /** Ends what is left of its connections. */
  destroy(): void {
    for (const { carrier } of this.#connections) carrier.destroy();
  }

  #some(is: (connection: UpstreamConnection) => boolean): boolean {
    for (const connection of this.#connections) if (is(connection)) return true;
    return false;
  }

  #open(backoff: ConnectBackoff): void {
    const { tls, limits } = this.#settings;
    const begunAtMs = performance.now();
    const giveUp = openSocket(this.#address, tls, limits.connectTimeoutMs, (result) => {
      this.#openings.delete(giveUp);
      if (result instanceof Error) this.#failed(backoff, begunAtMs, result);
      else this.#opened(result, backoff, begunAtMs);
    });
    this.#openings.add(giveUp);
  }

  #opened(socket: Socket, backoff: ConnectBackoff, begunAtMs: number): void {
    const isSurplus = this.#isActive;
    // One of several is used once its server has sent SETTINGS: a balancer that allows fewer accepts and closes it.
    const start = { isSurplus, streamsBeforeSettings: isSurplus ? 0 : this.#streamsBeforeSettings };
    const connection = new UpstreamConnection(socket, this.#address, this.#settings, start, {
      onKnown: (streamsMax) => {
        // One at least: a server that takes none, and ends connections, would be connected to over and over.
        const { streamsBeforeSettings } = this.#settings.limits;
        this.#streamsBeforeSettings = Math.max(1, Math.min(streamsMax, streamsBeforeSettings));
        backoff.succeeded();
        this.problem = undefined;
        if (!isSurplus) this.#events.onConnected();
      },
      onRoom: () => (connection.room > 0 ? this.#events.onRoom(connection) : this.#events.onChange()),
      onClosed: (_, problem) => {
        this.#connections.delete(connection);
        if (problem !== undefined) this.#failed(backoff, begunAtMs, problem);
        // That the others of a burst are not needed any more says nothing of the server.
        if (!isSurplus || !this.#isActive) this.#events.onLost();
        this.#events.onClosed();
      },
    });
    this.#connections.add(connection);
    if (connection.room > 0) this.#events.onRoom(connection);
    // The calls that it was opened for may have been given up.
    if (!connection.carrier.busy) socket.unref();
  }

  #failed(backoff: ConnectBackoff, begunAtMs: number, cause: Error): void {
    backoff.failed(begunAtMs);
    const message = `cannot connect to ${nameAddress(this.#address)}: ${cause.message}`;
    this.problem = new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
    this.#events.onChange();
  }
}
