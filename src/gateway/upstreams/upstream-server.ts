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
  /** Called when a new connection is known to be of use. */
  onConnected(): void;
  /** Called when a connection is over. */
  onLost(): void;
}

/**
 * The connections to one server: opened when they are asked for, one at a time. If it cannot be reached, it is left alone
 * for as long as gRPC's rule says.
 */
export class UpstreamServer implements Loaded {
  readonly #address: UpstreamAddress;
  readonly #settings: ServerSettings;
  readonly #events: ServerEvents;
  readonly #backoff = new ConnectBackoff();
  readonly #connections = new Set<UpstreamConnection>();
  /** What a new connection may be trusted with: as much as the last one. */
  #streamsBeforeSettings: number;
  /** Gives up the connection that is being opened. */
  #giveUp: (() => void) | undefined;
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
    return this.#giveUp !== undefined || this.#some(({ isKnown, isRetired }) => !isKnown && !isRetired);
  }

  /** Whether {@link connect} opens another connection now. */
  get mayConnect(): boolean {
    if (this.#giveUp !== undefined || this.#backoff.waits) return false;
    let connections = 0;
    for (const { isRetired } of this.#connections) if (!isRetired) connections++;
    return connections < this.#settings.connections;
  }

  /** Returns a connection with room for a call. */
  findRoom(): UpstreamConnection | undefined {
    for (const connection of this.#connections) if (connection.room > 0) return connection;
    return undefined;
  }

  /** Opens a connection if it {@link mayConnect}. */
  connect(): void {
    if (!this.mayConnect) return;
    const { tls, limits } = this.#settings;
    const begunAtMs = performance.now();
    this.#giveUp = openSocket(this.#address, tls, limits.connectTimeoutMs, (result) => {
      this.#giveUp = undefined;
      if (result instanceof Error) this.#failed(begunAtMs, result);
      else this.#opened(result, begunAtMs);
    });
  }

  /** Takes no more calls, and lets those that it has end. */
  drain(): void {
    this.#giveUp?.();
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

  #opened(socket: Socket, begunAtMs: number): void {
    const connection = new UpstreamConnection(socket, this.#address, this.#settings, this.#streamsBeforeSettings, {
      onKnown: (streamsMax) => {
        // One at least: a server that takes none, and ends connections, would be connected to over and over.
        const { streamsBeforeSettings } = this.#settings.limits;
        this.#streamsBeforeSettings = Math.max(1, Math.min(streamsMax, streamsBeforeSettings));
        this.#backoff.succeeded();
        this.problem = undefined;
        this.#events.onConnected();
      },
      onRoom: () => (connection.room > 0 ? this.#events.onRoom(connection) : this.#events.onChange()),
      onClosed: (_, problem) => {
        this.#connections.delete(connection);
        if (problem !== undefined) this.#failed(begunAtMs, problem);
        this.#events.onLost();
      },
    });
    this.#connections.add(connection);
    if (connection.room > 0) this.#events.onRoom(connection);
    // The calls that it was opened for may have been given up.
    if (!connection.carrier.busy) socket.unref();
  }

  #failed(begunAtMs: number, cause: Error): void {
    this.#backoff.failed(begunAtMs);
    const message = `cannot connect to ${nameAddress(this.#address)}: ${cause.message}`;
    this.problem = new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
    this.#events.onChange();
  }
}
