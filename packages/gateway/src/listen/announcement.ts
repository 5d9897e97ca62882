import { channel } from "node:diagnostics_channel";
import type { Server, Socket } from "node:net";
import type { CarriedExchange } from "../exchange/index.ts";

// The names under which node:http tells of its own requests, which is where tools that watch a process listen.
const requestStart = channel("http.server.request.start");
const responseFinish = channel("http.server.response.finish");

/** Returns whether anybody listens to either channel. */
export function isAnyoneListening(): boolean {
  return requestStart.hasSubscribers || responseFinish.hasSubscribers;
}

/**
 * Publishes a request on `http.server.request.start` now, and on `http.server.response.finish` once all of its answer
 * has been handed to the system. As with node:http, an answer that its client did not wait for never finishes.
 *
 * Both messages have the same four members: `request`, `response`, the `socket`, and the `server` of `node:net`.
 */
export function announce(exchange: CarriedExchange, socket: Socket, server: Server | undefined): void {
  const message = {
    request: new AnnouncedRequest(exchange, socket),
    response: new AnnouncedResponse(exchange),
    socket,
    server,
  };
  exchange.onComplete = () => responseFinish.publish(message);
  requestStart.publish(message);
}

/** The members of node's `IncomingMessage` that say what was asked. It is neither a stream nor an emitter. */
class AnnouncedRequest {
  readonly socket: Socket;
  readonly #exchange: CarriedExchange;

  constructor(exchange: CarriedExchange, socket: Socket) {
    this.#exchange = exchange;
    this.socket = socket;
  }

  get method(): string {
    return this.#exchange.httpMethod;
  }

  /** Path and query. */
  get url(): string {
    return this.#exchange.target;
  }

  get httpVersion(): string | undefined {
    return this.#exchange.httpVersion;
  }

  /** Names and values in turn; on HTTP/2 with the pseudo-header fields, as node:http2 has them. */
  get rawHeaders(): readonly string[] {
    return this.#exchange.fields;
  }

  /** The fields by their names in lower case; several of one name are joined by a comma, cookies by a semicolon. */
  get headers(): Readonly<Record<string, string>> {
    const { fields } = this.#exchange;
    const names = fields.flatMap((name, i) => (i % 2 === 0 ? [name.toLowerCase()] : []));
    return Object.fromEntries(names.map((name) => [name, this.#exchange.get(name) ?? ""]));
  }
}

/** The members of node's `ServerResponse` that say what was answered. It cannot be written to. */
class AnnouncedResponse {
  readonly #exchange: CarriedExchange;

  constructor(exchange: CarriedExchange) {
    this.#exchange = exchange;
  }

  /** 0 until there is an answer. */
  get statusCode(): number {
    return this.#exchange.httpStatus;
  }

  get headersSent(): boolean {
    return this.#exchange.httpStatus !== 0;
  }
}
