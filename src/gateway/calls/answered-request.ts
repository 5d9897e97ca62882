import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { Exchange, Peer } from "../carriers/index.ts";
import type { Protocol } from "../protocols/index.ts";
import type { AdmitRequest } from "./dispatch.ts";
import { fullPathOf, type Match } from "./match.ts";

/** One answered request, for logs and metrics. Cannot be spread, because most members are getters. */
export interface AnsweredRequest {
  /** `/package.Service/Method`, or `undefined` when the request matched no RPC. */
  readonly procedure: string | undefined;
  readonly protocol: Protocol;
  readonly httpMethod: string;
  /** The request target without its query. */
  readonly path: string;
  /** The path template of the matched rule, or the path of the endpoint, with the prefix; otherwise `undefined`. */
  readonly httpRoute: string | undefined;
  /** `undefined` over Fetch, which does not expose it. */
  readonly httpVersion: Exchange["httpVersion"];
  readonly scheme: "http" | "https";
  /** 0 when nothing was answered: the client went away, or the answer could not be written, as `error` says. */
  readonly httpStatus: number;
  /** The error in the answer; `undefined` on success. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly contextValues: ContextValues;
  /** The same as in {@link AdmitRequest}. */
  readonly peer: Peer;
}

/** The source from which an {@link Answered} computes its members. */
export interface AnsweredSource extends Pick<AdmitRequest, "procedure" | "protocol" | "contextValues" | "peer"> {
  readonly match: Match;
  /** The path prefix of the gateway. */
  readonly prefix: string;
}

/**
 * Computes its members on demand, because few are read: metrics read four, a trace that is not sampled one.
 *
 * Not the request itself, which has the credential: a log may print all of this.
 */
export class Answered implements AnsweredRequest {
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly #source: AnsweredSource;
  readonly #exchange: Exchange;

  constructor(source: AnsweredSource, exchange: Exchange, error: ConnectError | undefined, durationMs: number) {
    this.error = error;
    this.durationMs = durationMs;
    this.#source = source;
    this.#exchange = exchange;
  }

  get procedure(): string | undefined {
    return this.#source.procedure;
  }

  get protocol(): Protocol {
    return this.#source.protocol;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get path(): string {
    const { target } = this.#exchange;
    const questionMark = target.indexOf("?");
    return questionMark < 0 ? target : target.slice(0, questionMark);
  }

  get httpRoute(): string | undefined {
    return httpRouteOf(this.#source);
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

function httpRouteOf({ match, prefix }: AnsweredSource): string | undefined {
  switch (match.kind) {
    case "rest":
    case "rest-stream":
      return prefix + match.binding.pattern.pathTemplate;
    case "endpoint":
      return fullPathOf(match.endpoint, prefix);
    default:
      return undefined;
  }
}
