import { Code, ConnectError } from "@connectrpc/connect";
import { RequestBody } from "@protoport/gateway/exchange";
import type { EnvelopeReader } from "@protoport/gateway/forward";
import { readMessages } from "@protoport/gateway/messages";
import { responseError } from "./call-status.ts";

interface ReadCall {
  /** The error for a cancelled call, or `undefined` if the caller did not cancel. */
  readonly cancellation: ConnectError | undefined;
  /** Fails the call and resets its stream. */
  fail(error: ConnectError): void;
  /** Returns the error to report for a response that is not valid. */
  malformedError(error: ConnectError): ConnectError;
}

/** A response's messages, which the server sends as fast as they are read. */
export class ResponseMessages {
  readonly #body: RequestBody;
  /** The error if the call has failed. */
  #error: ConnectError | undefined;

  /** @param consumed - called with the number of bytes that were read, which extends the flow-control window */
  constructor(consumed: (bytes: number) => void) {
    this.#body = new RequestBody({ startBody: () => undefined, consumed }, 0);
  }

  onData(piece: Uint8Array): void {
    this.#body.onData(piece, false);
  }

  /** Called when the response is complete. The iterator yields the received messages, and then throws the error. */
  end(error: ConnectError | undefined): void {
    this.#error = error;
    this.#body.onEnd();
  }

  /** Called when the call fails before its response is complete. */
  fail(error: ConnectError): void {
    this.#error = error;
    this.#body.close();
  }

  /** Returns the response messages. Can be called only once. */
  read<T>(call: ReadCall, reader: EnvelopeReader<T>): AsyncIterable<T> {
    const messages = readMessages(this.#body.pieces(), reader)[Symbol.asyncIterator]();
    const iterator: AsyncIterator<T> = {
      next: async () => {
        // A cancelled call returns no more messages, even if the response is complete.
        if (call.cancellation !== undefined) throw call.cancellation;
        let result: IteratorResult<T>;
        try {
          result = await messages.next();
        } catch (error) {
          if (this.#error !== undefined) throw this.#error;
          const failure = responseError(error);
          call.fail(failure);
          throw call.malformedError(failure);
        }
        if (result.done === true && this.#error !== undefined) throw this.#error;
        return result;
      },
      // The caller stopped reading, so the call is cancelled.
      return: () => {
        call.fail(new ConnectError("the caller stopped reading the response", Code.Canceled));
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }
}
