import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { MessageInit, UnaryProcedure, UnaryProtocol } from "../protocols/index.ts";
import { Call, type CallView } from "./call.ts";
import { type AnswerTaker, LaterAnswer } from "./later-answer.ts";

/** One unary call: body → message → interceptors → handler → message → answer. */
export class UnaryCall extends Call<UnaryProcedure, UnaryProtocol> implements AnswerTaker {
  protected override invoke(message: Message): void {
    if (this.done) return;
    this.view.message = message;
    const request = this.view as CallView & UnaryRequest;
    const { intercept, handle } = this.procedure;
    try {
      // The server shuts down: a handler that has not begun need not.
      if (intercept === undefined && this.ended !== undefined) throw this.ended;
      if (intercept === undefined) this.#await(handle(message, request));
      // An untyped interceptor may return anything, hence `Promise.resolve`.
      else
        Promise.resolve(intercept(request)).then(
          (response) => this.#succeed(response),
          (error: unknown) => this.takeError(error),
        );
    } catch (error) {
      this.takeError(error);
    }
  }

  /** Waits for what a handler answers. Without interceptors nothing else needs it, so no promise of a response is made. */
  #await(answer: ReturnType<UnaryProcedure["handle"]>): void {
    if (answer instanceof LaterAnswer) return answer.tell(this);
    // An untyped handler may return anything.
    Promise.resolve(answer).then(
      (init) => this.take(init),
      (error: unknown) => this.takeError(error),
    );
  }

  takeError(thrown: unknown): void {
    this.failHandling(thrown);
  }

  take(init: MessageInit): void {
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
      const header = this.toSend(response.header, this.protocol.responseHeader);
      const trailer = this.toSend(response.trailer, this.protocol.responseTrailer);
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
