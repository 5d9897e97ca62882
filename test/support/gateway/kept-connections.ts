import type { Address, HttpAnswer, HttpRequest, HttpVersion } from "../carriers/exchange.ts";
import { exchangeHttp1 } from "../carriers/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../carriers/http2-connection.ts";

/**
 * Sends requests, those over HTTP/2 to the same address on the same connection: to open one costs twice what most calls
 * do. Dispose of it before the servers, some of which wait for their connections.
 */
export class KeptConnections implements Disposable {
  readonly #opened = new Map<Address, Promise<Http2Connection>>();

  /** Sends a request whole and reads the answer whole. */
  async exchange(address: Address, version: HttpVersion, request: HttpRequest): Promise<HttpAnswer> {
    if (version === "1.1") return await exchangeHttp1(address, request);
    const connection = await (this.#opened.get(address) ?? this.#open(address));
    return await connection.exchange(request);
  }

  #open(address: Address): Promise<Http2Connection> {
    const opening = openHttp2(address);
    this.#opened.set(address, opening);
    const forget = (): void => void this.#opened.delete(address);
    void opening.then(({ session }) => session.once("goaway", forget).once("close", forget), forget);
    return opening;
  }

  [Symbol.dispose](): void {
    for (const opening of this.#opened.values()) void opening.then((connection) => connection[Symbol.dispose]());
  }
}
