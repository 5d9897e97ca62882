import { AsyncResource } from "node:async_hooks";
import { type BodyPlan, type BodyReceiver, RequestBody } from "../exchange/index.ts";

/**
 * A body whose receiver runs in the async context (`AsyncLocalStorage`) of the code that requested the body, as after
 * an `await`, and not in the socket read's context.
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

  protected override passLarge(receiver: BodyReceiver, start: Uint8Array): void {
    if (this.#context === undefined) super.passLarge(receiver, start);
    else this.#context.runInAsyncScope(() => super.passLarge(receiver, start));
  }
}
