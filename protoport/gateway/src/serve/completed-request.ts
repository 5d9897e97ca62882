import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { type Exchange, type Peer, readHeaderField } from "../http/index.ts";
import type { AdmitRequest, CompletedRequest, ProtocolName } from "../protocols/index.ts";

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

/** Returns the request id in the response, or otherwise the request id that the client has sent. */
export function requestIdOfExchange({ addedFields, common }: Exchange): string | undefined {
  const requestId = readHeaderField(addedFields, "x-request-id") ?? common.xRequestId;
  return requestId !== null && printableId.test(requestId) ? requestId : undefined;
}

// Matches short ids without line breaks, so that a client cannot inject line breaks or long strings into logs.
const printableId = /^[!-~]{1,128}$/;
