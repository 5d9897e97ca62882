import { type Exchange, type HeaderFields, startInterval } from "../http/index.ts";
import { progressEvent } from "./events.ts";

/** Seconds between progress notifications. Some clients restart their timeout at each notification. */
const intervalS = 5;

/** Sends progress notifications while a unary call runs. The first one begins a Server-Sent Events response. */
export class UnaryProgress {
  readonly #exchange: Exchange;
  readonly #token: string;
  readonly #fieldsOf: () => HeaderFields;
  readonly #interval: { stop(): void };
  #seconds = 0;
  #hasBegun = false;

  /** @param token - the progress token's JSON text */
  constructor(exchange: Exchange, token: string, fieldsOf: () => HeaderFields) {
    this.#exchange = exchange;
    this.#token = token;
    this.#fieldsOf = fieldsOf;
    this.#interval = startInterval(intervalS * 1000, () => this.#notify());
  }

  /** Stops the notifications. Returns whether the response has begun. */
  stop(): boolean {
    this.#interval.stop();
    return this.#hasBegun;
  }

  #notify(): void {
    this.#seconds += intervalS;
    try {
      if (!this.#hasBegun) this.#exchange.begin(200, this.#fieldsOf());
    } catch {
      // `admit` or the handler has set an invalid response field. The response to the call reports this error.
      return this.#interval.stop();
    }
    this.#hasBegun = true;
    const text = `running for ${this.#seconds} seconds`;
    // Backpressure is ignored, because a client that does not read costs only a hundred bytes per notification.
    void this.#exchange.write(progressEvent(this.#token, this.#seconds, text));
  }
}
