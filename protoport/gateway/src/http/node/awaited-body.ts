import { AsyncResource } from "node:async_hooks";
import { type BodyPlan, type BodyReceiver, type HttpProblem, RequestBody } from "../exchange/index.ts";

/** A request body that calls the receiver in the async context of the read instead of the socket's context. */
export class AwaitedBody extends RequestBody {
  override read(plan: BodyPlan, receiver: BodyReceiver): void {
    super.read(plan, this.ended ? receiver : new ReceiverInContext(receiver));
  }
}

class ReceiverInContext extends AsyncResource implements BodyReceiver {
  readonly #receiver: BodyReceiver;
  /** Undefined if the receiver has no `receivedStart`, so that the body does not call this method for each piece. */
  readonly receivedStart?: NonNullable<BodyReceiver["receivedStart"]>;

  constructor(receiver: BodyReceiver) {
    super("AwaitedBody");
    this.#receiver = receiver;
    if (receiver.receivedStart === undefined) return;
    this.receivedStart = (start, rest) => this.runInAsyncScope(() => receiver.receivedStart?.(start, rest) === true);
  }

  received(body: Uint8Array | undefined): void {
    this.runInAsyncScope(() => this.#receiver.received(body));
  }

  dropped(problem: HttpProblem | undefined): void {
    this.#receiver.dropped?.(problem);
  }
}
