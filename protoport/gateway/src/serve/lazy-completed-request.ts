import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { Exchange, Peer } from "../http/index.ts";
import type { ProtocolName, AdmitRequest, CompletedRequest } from "../protocols/index.ts";

/**
 * A completed request with members that are computed on demand. Metrics read four members, and an unsampled trace reads
 * one member.
 *
 * The object is separate from the request, because logs may print all members, and the request contains the credential.
 */
export class LazyCompletedRequest implements CompletedRequest {
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly #source: AdmitRequest;
  readonly #exchange: Exchange;

  constructor(source: AdmitRequest, exchange: Exchange, error: ConnectError | undefined, durationMs: number) {
    this.error = error;
    this.durationMs = durationMs;
    this.#source = source;
    this.#exchange = exchange;
  }

  get procedure(): string | undefined {
    return this.#source.procedure;
  }

  get protocol(): ProtocolName {
    return this.#source.protocol;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get path(): string {
    return this.#source.path;
  }

  get httpRoute(): string | undefined {
    return this.#source.httpRoute;
  }

  get httpVersion(): Exchange["httpVersion"] {
    return this.#exchange.httpVersion;
  }

  get scheme(): "http" | "https" {
    return this.#exchange.url.startsWith("https:") ? "https" : "http";
  }

  get httpStatus(): number {
    return this.#exchange.httpStatus;
  }

  get contextValues(): ContextValues {
    return this.#source.contextValues;
  }

  get peer(): Peer {
    return this.#source.peer;
  }
}
