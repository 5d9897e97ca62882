import type { Socket } from "node:net";
import { type BacklogBudget, errorName, timerMsMax } from "@plantstore/gateway/exchange";
import { ClientConnection, type Http2Limits } from "@plantstore/http-engine/client";
import { HealthWatch } from "./health-watch.ts";
import type { PreparedTls } from "./open-socket.ts";
import type { UpstreamAddress } from "./upstream-address.ts";
import type { UpstreamLimits } from "./upstream-limits.ts";

/** What all servers of an upstream have in common. */
export interface ServerSettings {
  readonly tls: PreparedTls | undefined;
  /** Connections to each at most. */
  readonly connections: number;
  readonly keepaliveMs: number;
  readonly healthService: string | undefined;
  readonly maxConnectionAgeMs: number;
  readonly limits: UpstreamLimits;
  /** Of a connection that is the only one to its server. */
  readonly http2Limits: Http2Limits;
  /** Of a connection in addition to others. */
  readonly surplusHttp2Limits: Http2Limits;
  readonly budget: BacklogBudget;
}

/** What a connection begins with. */
export interface ConnectionStart {
  /** Streams that it opens before its server has said how many it takes. */
  readonly streamsBeforeSettings: number;
  /** Whether there are others to the same server. */
  readonly isSurplus: boolean;
}

/** The reports of an {@link UpstreamConnection}. */
export interface ConnectionEvents {
  /** Called when the server has said how many streams it takes, and if it is asked for its health, how that is. */
  onKnown(streamsMax: number): void;
  /** Called when there may be room for a call, or none any more. */
  onRoom(connection: UpstreamConnection): void;
  /** Called when it is over. `problem` says why it was of no use. */
  onClosed(connection: UpstreamConnection, problem: Error | undefined): void;
}

/** A connection to a server, from the time its socket is open: whether calls may be given to it, and why not. */
export class UpstreamConnection {
  readonly carrier: ClientConnection;
  readonly #events: ConnectionEvents;
  readonly #age: NodeJS.Timeout | undefined;
  readonly #health: HealthWatch | undefined;
  #streamsMax = 0;
  #isHealthy: boolean;
  /** Whether it takes no more calls, because one side is about to end it. */
  isRetired = false;
  /** Whether it is known what the server takes, and how it is. */
  isKnown = false;
  /** The code with which it ended. */
  #reason = 0;

  constructor(
    socket: Socket,
    address: UpstreamAddress,
    settings: ServerSettings,
    { streamsBeforeSettings, isSurplus }: ConnectionStart,
    events: ConnectionEvents,
  ) {
    const { budget, keepaliveMs, healthService, maxConnectionAgeMs } = settings;
    this.#events = events;
    this.#isHealthy = healthService === undefined;
    this.carrier = new ClientConnection(socket, {
      limits: isSurplus ? settings.surplusHttp2Limits : settings.http2Limits,
      budget,
      keepaliveMs,
      streamsBeforeSettings,
      onReady: (streamsMax) => this.#ready(streamsMax),
      onStreamAvailable: () => this.#events.onRoom(this),
      // So that a program whose calls are all answered can end.
      onBusy: (busy) => (busy ? socket.ref() : socket.unref()),
      onRetired: (code) => this.#retired(code),
      onError: (_scope, code) => {
        this.#reason = code;
      },
      onClose: () => this.#closed(),
      // A defect of ours: its call has failed already.
      onFault: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    });
    if (healthService !== undefined) {
      this.#health = new HealthWatch(this.carrier, address, healthService, (healthy) => this.#tell(healthy));
    }
    if (Number.isFinite(maxConnectionAgeMs)) this.#age = startAge(maxConnectionAgeMs, () => this.carrier.drain());
  }

  /** How many more calls it may be given now. */
  get room(): number {
    return this.#isHealthy ? this.carrier.availableStreams : 0;
  }

  /** Whether calls are given to it, as long as there is room. */
  get isServing(): boolean {
    return this.#isHealthy && !this.isRetired;
  }

  #ready(streamsMax: number): void {
    this.#streamsMax = streamsMax;
    // With one stream at a time or none, the question would leave none for calls.
    if (this.#health === undefined || streamsMax < 2) this.#tell(true);
    else this.#health.start();
  }

  #tell(healthy: boolean): void {
    this.#isHealthy = healthy;
    if (!this.isKnown) {
      this.isKnown = true;
      this.#events.onKnown(this.#streamsMax);
    }
    this.#events.onRoom(this);
  }

  #retired(code: number): void {
    this.#reason = code;
    this.isRetired = true;
    this.#health?.stop();
    // Not from here: it is told in the middle of a frame.
    queueMicrotask(() => this.#events.onRoom(this));
  }

  #closed(): void {
    clearTimeout(this.#age);
    const reason = this.#reason === 0 ? "" : ` (${errorName(this.#reason)})`;
    const problem = this.isKnown ? undefined : new Error(`the server does not answer in HTTP/2${reason}`);
    this.#events.onClosed(this, problem);
  }
}

/** By which share an age is longer or shorter by chance, so that connections do not end all at once. */
const ageJitter = 0.1;

function startAge(ageMs: number, over: () => void): NodeJS.Timeout {
  const timeoutMs = ageMs * (1 + ageJitter * (2 * Math.random() - 1));
  return setTimeout(over, Math.min(timeoutMs, timerMsMax)).unref();
}
