import { type Address, fieldValue, type HttpResponse, type HttpRequest, type HttpVersion } from "../http/exchange.ts";
import { type Http1Connection, openHttp1 } from "../http/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../http/http2-connection.ts";

/**
 * Sends requests one after another. Each address has one open connection, because opening a connection takes twice as
 * long as most calls. Dispose of the connections before the servers, because some servers wait until their connections
 * are closed.
 */
export class KeptConnections implements Disposable {
  readonly #opened = new Map<Address, Promise<Http2Connection>>();
  readonly #idle = new Map<Address, Http1Connection>();

  async exchange(address: Address, version: HttpVersion, request: HttpRequest): Promise<HttpResponse> {
    if (version === "1.1") return await this.#exchangeHttp1(address, request);
    const connection = await (this.#opened.get(address) ?? this.#open(address));
    return await connection.exchange(request);
  }

  async #exchangeHttp1(address: Address, request: HttpRequest): Promise<HttpResponse> {
    using opened = new DisposableStack();
    const connection = opened.use(this.#idle.get(address) ?? (await openHttp1(address)));
    this.#idle.delete(address);
    connection.request(request);
    const response = await connection.readResponse(request.httpMethod);
    if (fieldValue(response.header, "connection") !== "close") {
      opened.move();
      this.#idle.get(address)?.[Symbol.dispose]();
      this.#idle.set(address, connection);
    }
    return response;
  }

  #open(address: Address): Promise<Http2Connection> {
    const opening = openHttp2(address);
    this.#opened.set(address, opening);
    const forget = (): void => void this.#opened.delete(address);
    void opening.then(({ session }) => session.once("goaway", forget).once("close", forget), forget);
    return opening;
  }

  [Symbol.dispose](): void {
    for (const connection of this.#idle.values()) connection[Symbol.dispose]();
    for (const opening of this.#opened.values()) void opening.then((connection) => connection[Symbol.dispose]());
  }
}
