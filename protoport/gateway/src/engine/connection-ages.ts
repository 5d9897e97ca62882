import type { Socket } from "node:net";
import { inspect } from "node:util";
import type { HttpConnection } from "./http-server.ts";

/** Options for the maximum connection age. */
export interface ConnectionAgeOptions {
  /**
   * Milliseconds after which a connection is closed: MAX_CONNECTION_AGE in gRFC A9. The client then reconnects, and a
   * load balancer can choose another server. A jitter up to 10 % prevents connections that began together from closing
   * together. HTTP/2 clients get GOAWAY and finish their streams. HTTP/1.1 connections close with `connection: close`
   * on the next response, or when idle for a second. By default, connections have no maximum age.
   */
  readonly maxConnectionAgeMs?: number | undefined;
  /**
   * Milliseconds in which calls can finish after the maximum age, before the connection is destroyed:
   * MAX_CONNECTION_AGE_GRACE in gRFC A9. Defaults to no limit.
   */
  readonly maxConnectionAgeGraceMs?: number | undefined;
}

/** Closes connections that have reached the maximum age. One timer checks all open connections. */
export class ConnectionAges {
  readonly #maxAgeMs: number;
  readonly #graceMs: number;
  /** For each open connection, the time when it reaches the maximum age, in `performance.now()` milliseconds. */
  readonly #expiries = new Map<HttpConnection, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(maxAgeMs: number, graceMs: number) {
    this.#maxAgeMs = maxAgeMs;
    this.#graceMs = graceMs;
  }

  add(socket: Socket, connection: HttpConnection): void {
    this.#timer ??= setInterval(() => this.#checkAges(), this.#checkIntervalMs()).unref();
    const jitter = 1 + (2 * Math.random() - 1) * jitterShare;
    this.#expiries.set(connection, performance.now() + this.#maxAgeMs * jitter);
    socket.on("close", () => this.#remove(connection));
  }

  #remove(connection: HttpConnection): void {
    this.#expiries.delete(connection);
    if (this.#expiries.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #checkIntervalMs(): number {
    const shortestMs = Math.min(this.#maxAgeMs, this.#graceMs);
    return Math.min(maxAgeCheckMs, Math.max(minIntervalMs, shortestMs / checksPerAge));
  }

  #checkAges(): void {
    const nowMs = performance.now();
    for (const [connection, expiryMs] of this.#expiries) {
      if (nowMs >= expiryMs + this.#graceMs) connection.destroy();
      else if (nowMs >= expiryMs) connection.retire();
    }
  }
}

/** Creates the {@link ConnectionAges}, if there is a maximum age. @throws RangeError for a time that is not above 0 */
export function createConnectionAges(options: ConnectionAgeOptions): ConnectionAges | undefined {
  const { maxConnectionAgeMs = Number.POSITIVE_INFINITY, maxConnectionAgeGraceMs = Number.POSITIVE_INFINITY } = options;
  for (const [name, ms] of Object.entries({ maxConnectionAgeMs, maxConnectionAgeGraceMs })) {
    // `!(ms > 0)` also rejects NaN, unlike `ms <= 0`. A JavaScript program may pass a string from its environment.
    if (typeof ms !== "number" || !(ms > 0))
      throw new RangeError(`${name} must be a number above 0, got ${inspect(ms)}`);
  }
  if (maxConnectionAgeMs === Number.POSITIVE_INFINITY) return undefined;
  return new ConnectionAges(maxConnectionAgeMs, maxConnectionAgeGraceMs);
}

/** Jitter of the maximum age: ±10 %, as in gRFC A9. */
const jitterShare = 0.1;
// Maximum ages are minutes, so a second of delay does not matter. Checking 10,000 connections takes less than 1 ms.
const maxAgeCheckMs = 1000;
const minIntervalMs = 10;
// Number of checks per maximum age, or per grace time if that is shorter. With ten checks, a connection is closed at
// most a tenth of this time too late.
const checksPerAge = 10;
