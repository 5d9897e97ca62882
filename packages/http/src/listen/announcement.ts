import { channel } from "node:diagnostics_channel";
import type { Server, Socket } from "node:net";
import type { BaseExchange } from "../exchange/index.ts";

// The channels on which node:http publishes its own requests, and to which monitoring tools subscribe.
const requestStart = channel("http.server.request.start");
const responseFinish = channel("http.server.response.finish");

/** Returns whether either channel has subscribers. */
export function hasSubscribers(): boolean {
  return requestStart.hasSubscribers || responseFinish.hasSubscribers;
}

/**
 * Publishes a request on `http.server.request.start` now, and on `http.server.response.finish` once its complete
 * response has been passed to the system. As with node:http, a response whose client has disconnected never finishes.
 *
 * Both messages have the same four members: `request`, `response`, `socket`, and `server`, a `node:net` server.
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

/**
 * The members from node's `IncomingMessage` that describe the request. The request is neither a stream nor an emitter.
 */
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

  /** Path and query. */
  get url(): string {
    return this.#exchange.target;
  }

  get httpVersion(): string | undefined {
    return this.#exchange.httpVersion;
  }

  /** Alternating names and values. On HTTP/2 they include the pseudo-header fields, as in node:http2. */
  get rawHeaders(): readonly string[] {
    return this.#exchange.fields;
  }

  /**
   * The fields by name in lower case. Several fields with the same name are joined by a comma, cookies by a semicolon.
   */
  get headers(): Readonly<Record<string, string>> {
    const { fields } = this.#exchange;
    const names = fields.flatMap((name, i) => (i % 2 === 0 ? [name.toLowerCase()] : []));
    return Object.fromEntries(names.map((name) => [name, this.#exchange.get(name) ?? ""]));
  }
}

/** The members from node's `ServerResponse` that describe the response. The response cannot be written to. */
class AnnouncedResponse {
  readonly #exchange: BaseExchange;

  constructor(exchange: BaseExchange) {
    this.#exchange = exchange;
  }

  /** 0 until there is a response. */
  get statusCode(): number {
    return this.#exchange.httpStatus;
  }

  get headersSent(): boolean {
    return this.#exchange.httpStatus !== 0;
  }
}
