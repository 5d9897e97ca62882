import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { UnaryProcedure, UnaryProtocol } from "../protocols/index.ts";
import { Call, type CallView } from "./call.ts";

/** One unary call: body → message → interceptors → handler → message → answer. */
export class UnaryCall extends Call<UnaryProcedure, UnaryProtocol> {
  protected override invoke(message: Message): void {
    if (this.done) return;
    let response: Promise<UnaryResponse>;
    this.view.message = message;
    try {
      // An untyped interceptor may return anything.
      response = Promise.resolve(this.procedure.invoke(this.view as CallView & UnaryRequest));
    } catch (error) {
      return this.fail(error);
    }
    response.then(
      (answer) => this.#succeed(answer),
      (error: unknown) => this.fail(error),
    );
  }

  #succeed(response: UnaryResponse): void {
    if (this.done) return;
    let written: void | Promise<void>;
    try {
      written = this.protocol.writeMessage(response);
    } catch (error) {
      return this.failToWrite(error);
    }
    if (written instanceof Promise)
      written.then(
        () => this.settle(undefined),
        (error: unknown) => this.failToWrite(error),
      );
    else this.settle(undefined);
  }

  protected override writeError(error: ConnectError): void | Promise<void> {
    return this.protocol.writeError(error);
  }
}
