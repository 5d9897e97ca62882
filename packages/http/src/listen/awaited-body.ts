import { AsyncResource } from "node:async_hooks";
import { type BodyPlan, type BodyReceiver, type HttpProblem, RequestBody } from "../exchange/index.ts";

/**
 * A body whose receiver runs in the async context (`AsyncLocalStorage`) in which the body was requested, as after an
 * `await`, and not in the socket read's context.
 */
export class AwaitedBody extends RequestBody {
  override read(plan: BodyPlan, receiver: BodyReceiver): void {
    super.read(plan, this.ended ? receiver : new ReceiverInContext(receiver));
  }
}

class ReceiverInContext extends AsyncResource implements BodyReceiver {
  readonly #receiver: BodyReceiver;

  constructor(receiver: BodyReceiver) {
    super("AwaitedBody");
    this.#receiver = receiver;
  }

  received(body: Uint8Array | undefined): void {
    this.runInAsyncScope(() => this.#receiver.received(body));
  }

  receivedStart(start: Uint8Array, rest: AsyncIterable<Uint8Array>): boolean {
    return this.runInAsyncScope(() => this.#receiver.receivedStart?.(start, rest) === true);
  }

  dropped(problem: HttpProblem | undefined): void {
    this.#receiver.dropped?.(problem);
  }
}
