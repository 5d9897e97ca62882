import type { Socket } from "node:net";
import { maxTimerMs } from "@protoport/gateway/exchange";
import { type BacklogBudget } from "@protoport/gateway/http2-client";
import { errorName } from "@protoport/gateway/errors";
import { ClientConnection, type Http2Limits } from "@protoport/gateway/http2-client";
import { HealthWatch } from "./health-watch.ts";
import { explainTlsError, missingClientCertificate, type PreparedTls } from "./open-socket.ts";
import type { UpstreamAddress } from "./upstream-address.ts";
import type { CompleteUpstreamOptions } from "./upstream-options.ts";

/** Settings that all upstream servers share. */
export interface ServerSettings extends Omit<CompleteUpstreamOptions, "addresses" | "tls"> {
  readonly tls: PreparedTls | undefined;
  /** Limits for the first connection to a server. */
  readonly http2Limits: Http2Limits;
  /** Limits for additional connections. */
  readonly additionalHttp2Limits: Http2Limits;
  readonly budget: BacklogBudget;
}

interface ConnectionStart {
  /** Maximum streams that are opened before the server's SETTINGS arrive. */
  readonly streamsBeforeSettings: number;
  /** Whether the server has other connections. */
  readonly isAdditional: boolean;
}

/** The {@link UpstreamConnection} events. */
interface ConnectionEvents {
  /** Called when the server's SETTINGS have arrived, and also its health if the health is watched. */
  onEstablished(maxStreams: number): void;
  /** Called when {@link UpstreamConnection.availableStreams} may have changed. */
  onStreamAvailable(connection: UpstreamConnection): void;
  /** Called when the connection is closed. `problem` is set if the connection was never established. */
  onClosed(connection: UpstreamConnection, problem: Error | undefined): void;
}

/** An open connection to a server. */
export class UpstreamConnection {
  readonly http2: ClientConnection;
  readonly #events: ConnectionEvents;
  readonly #age: NodeJS.Timeout | undefined;
  readonly #health: HealthWatch | undefined;
  #maxStreams = 0;
  #isHealthy: boolean;
  /** Whether the connection accepts no more calls because one side is closing it. */
  isRetired = false;
  /** Whether the server's SETTINGS have arrived, and also its health if the health is watched. */
  isEstablished = false;
  /** The HTTP/2 error code with which the connection was closed. */
  #errorCode = 0;
  #socketError: Error | undefined;
  /** Whether the server may have closed the connection because no client certificate was sent. */
  readonly #lacksCertificate: boolean;

  constructor(
    socket: Socket,
    address: UpstreamAddress,
    settings: ServerSettings,
    { streamsBeforeSettings, isAdditional }: ConnectionStart,
    events: ConnectionEvents,
  ) {
    const { budget, keepaliveMs, healthService, maxConnectionAgeMs } = settings;
    this.#events = events;
    this.#lacksCertificate = settings.tls?.hasCertificate === false;
    // With TLS 1.3, a server may reject the client's certificate after the socket is open.
    socket.once("error", (error) => {
      this.#socketError = explainTlsError(error);
    });
    this.#isHealthy = healthService === undefined;
    this.http2 = new ClientConnection(socket, {
      limits: isAdditional ? settings.additionalHttp2Limits : settings.http2Limits,
      budget,
      keepaliveMs,
      streamsBeforeSettings,
      onReady: (maxStreams) => this.#ready(maxStreams),
      onStreamAvailable: () => this.#events.onStreamAvailable(this),
      // Without calls in flight, the socket must not keep the process running.
      onBusy: (busy) => (busy ? socket.ref() : socket.unref()),
      onRetired: (code) => this.#retired(code),
      onError: (_scope, code) => {
        this.#errorCode = code;
      },
      onClose: () => this.#closed(),
      lossReason: () => (this.isEstablished ? undefined : this.#describeProblem()),
      // Only a warning, because the affected call has already failed. The error is a bug in this package.
      onFault: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    });
    if (healthService !== undefined) {
      this.#health = new HealthWatch(this.http2, address, healthService, (isHealthy) => this.#setHealth(isHealthy));
    }
    if (Number.isFinite(maxConnectionAgeMs)) this.#age = startAgeTimer(maxConnectionAgeMs, () => this.http2.drain());
  }

  /** How many calls can be started now. */
  get availableStreams(): number {
    return this.#isHealthy ? this.http2.availableStreams : 0;
  }

  /** Whether the connection gets calls while it has free streams. */
  get isServing(): boolean {
    return this.#isHealthy && !this.isRetired;
  }

  #ready(maxStreams: number): void {
    this.#maxStreams = maxStreams;
    // With a single stream, health is not watched, because the watch would leave no stream for calls.
    if (this.#health === undefined || maxStreams < 2) this.#setHealth(true);
    else this.#health.start();
  }

  #setHealth(isHealthy: boolean): void {
    this.#isHealthy = isHealthy;
    if (!this.isEstablished) {
      this.isEstablished = true;
      this.#events.onEstablished(this.#maxStreams);
    }
    this.#events.onStreamAvailable(this);
  }

  #retired(code: number): void {
    this.#errorCode = code;
    this.isRetired = true;
    this.#health?.stop();
    // The event is deferred, because `onRetired` is called while a frame is processed.
    queueMicrotask(() => this.#events.onStreamAvailable(this));
  }

  #closed(): void {
    clearTimeout(this.#age);
    this.#events.onClosed(this, this.isEstablished ? undefined : new Error(this.#describeProblem()));
  }

  #describeProblem(): string {
    const error = this.#socketError;
    if (error?.cause !== undefined) return error.message;
    const reason = this.#errorCode === 0 ? "" : ` (${errorName(this.#errorCode)})`;
    const hint = this.#lacksCertificate && this.#errorCode === 0 ? `; ${missingClientCertificate("may require")}` : "";
    return `the server did not respond with HTTP/2${reason}${hint}`;
  }
}

/** Fraction by which ages vary randomly, so that connections do not close at the same time. */
const ageJitter = 0.1;

function startAgeTimer(ageMs: number, expired: () => void): NodeJS.Timeout {
  const timeoutMs = ageMs * (1 + ageJitter * (2 * Math.random() - 1));
  return setTimeout(expired, Math.min(timeoutMs, maxTimerMs)).unref();
}
