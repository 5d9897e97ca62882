import { channel } from "node:diagnostics_channel";
import type { Server, Socket } from "node:net";
import type { BaseExchange } from "../exchange/index.ts";

// The diagnostics channels on which node:http publishes its requests. Monitoring tools subscribe to these channels.
const requestStart = channel("http.server.request.start");
const responseFinish = channel("http.server.response.finish");

/** Returns whether either channel has subscribers. */
export function hasSubscribers(): boolean {
  return requestStart.hasSubscribers || responseFinish.hasSubscribers;
}

/**
 * Publishes a request on `http.server.request.start`, and on `http.server.response.finish` after the complete response
 * was passed to the operating system. As with node:http, a response never finishes if the client has disconnected. The
 * `server` in a message is a `node:net` server.
 */
export function announce(exchange: BaseExchange, socket: Socket, server: Server | undefined): void {
  const message = {
    request: new AnnouncedRequest(exchange, socket),
    response: new AnnouncedResponse(exchange),
    socket,
    server,
  };
  exchange.onComplete = () => responseFinish.publish(message);
  requestStart.publish(message);
}

/** A request with the descriptive members of node's `IncomingMessage`, but neither a stream nor an emitter. */
class AnnouncedRequest {
  readonly socket: Socket;
  readonly #exchange: BaseExchange;

  constructor(exchange: BaseExchange, socket: Socket) {
    this.#exchange = exchange;
    this.socket = socket;
  }

  get method(): string {
    return this.#exchange.httpMethod;
  }

  get url(): string {
    return this.#exchange.target;
  }

  get httpVersion(): string | undefined {
    return this.#exchange.httpVersion;
  }

  /** Name, value, name, value, … On HTTP/2 including the pseudo-header fields, as in node:http2. */
  get rawHeaders(): readonly string[] {
    return this.#exchange.fields;
  }

  /** The fields by lower-case name. Several values are joined by a comma, and cookies by a semicolon. */
  get headers(): Readonly<Record<string, string>> {
    const { fields } = this.#exchange;
    const names = fields.flatMap((name, i) => (i % 2 === 0 ? [name.toLowerCase()] : []));
    return Object.fromEntries(names.map((name) => [name, this.#exchange.get(name) ?? ""]));
  }
}

/** A response with the descriptive members of node's `ServerResponse`. Subscribers cannot write to the response. */
class AnnouncedResponse {
  readonly #exchange: BaseExchange;

  constructor(exchange: BaseExchange) {
    this.#exchange = exchange;
  }

  /** The response status, or 0 before the response. */
  get statusCode(): number {
    return this.#exchange.httpStatus;
  }

  get headersSent(): boolean {
    return this.#exchange.httpStatus !== 0;
  }
}
