import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { MessageInit, UnaryProcedure, UnaryProtocol } from "../protocols/index.ts";
import { Call, type CallView } from "./call.ts";

/** One unary call: body → message → interceptors → handler → message → answer. */
export class UnaryCall extends Call<UnaryProcedure, UnaryProtocol> {
  protected override invoke(message: Message): void {
    if (this.done) return;
    this.view.message = message;
    const request = this.view as CallView & UnaryRequest;
    const { intercept, handle } = this.procedure;
    const fail = (error: unknown): void => this.failHandling(error);
    try {
      // Without interceptors nothing else needs a response, so no promise of one is made. An untyped handler or
      // interceptor may return anything, hence `Promise.resolve`.
      if (intercept === undefined) Promise.resolve(handle(request)).then((init) => this.#handled(init), fail);
      else Promise.resolve(intercept(request)).then((response) => this.#succeed(response), fail);
    } catch (error) {
      fail(error);
    }
  }

  #handled(init: MessageInit): void {
    if (this.done) return;
    let response: UnaryResponse;
    try {
      response = toUnaryResponse(this.view, this.procedure.method, init);
    } catch (error) {
      return this.failHandling(error);
    }
    this.#succeed(response);
  }

  #succeed(response: UnaryResponse): void {
    if (this.done) return;
    let written: void | Promise<void>;
    try {
      const { responseHeader, responseTrailer } = this.protocol;
      const header = this.toSend(response.header, responseHeader);
      const trailer = this.toSend(response.trailer, responseTrailer);
      written = this.protocol.writeMessage({ message: response.message, header, trailer });
    } catch (error) {
      return this.failToWrite(error);
    }
    this.succeed(written);
  }

  protected override writeError(error: ConnectError): void | Promise<void> {
    return this.protocol.writeError(error);
  }
}

/** Returns the response for a handler's message, with the header and trailer that the handler has set. */
export function toUnaryResponse(view: CallView, method: DescMethodUnary, init: MessageInit): UnaryResponse {
  const { responseHeader: header, responseTrailer: trailer } = view;
  return { stream: false, service: method.parent, method, header, trailer, message: create(method.output, init) };
}
