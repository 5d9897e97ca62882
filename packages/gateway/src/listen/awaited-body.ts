import { AsyncResource } from "node:async_hooks";
import { type BodyPlan, type BodyReceiver, RequestBody } from "../exchange/index.ts";

/**
 * A body whose reader goes on in the context in which it has asked for all of it (`AsyncLocalStorage`), as after an
 * `await`: of its own request, of the middleware before it, and not of whatever the socket is read for.
 */
export class AwaitedBody extends RequestBody {
  #context: AsyncResource | undefined;

  override read(plan: BodyPlan, receiver: BodyReceiver): void {
    if (!this.ended) this.#context = new AsyncResource("AwaitedBody");
    super.read(plan, receiver);
  }

  protected override pass(receiver: BodyReceiver, body: Uint8Array | undefined): void {
    if (this.#context === undefined) super.pass(receiver, body);
    else this.#context.runInAsyncScope(() => receiver.received(body));
  }
}
