import type { HandlerContext } from "@connectrpc/connect";
import { CallView, requestOf } from "@plantstore/gateway/internal/serve";
import type { Abandonment } from "../client/index.ts";

type EndListener = Parameters<Abandonment["addEventListener"]>[1];

/** Returns what aborts when a call ends: its signal only if an interceptor may have replaced it. */
export function abortOf(context: HandlerContext): Abandonment {
  return context instanceof CallView ? new CallAbort(context) : context.signal;
}

/** The end of a call, without its signal, which costs a tenth of a forwarded call. */
class CallAbort implements Abandonment {
  readonly #context: CallView;

  constructor(context: CallView) {
    this.#context = context;
  }

  get aborted(): boolean {
    return requestOf(this.#context).ended !== undefined;
  }

  get reason(): unknown {
    return requestOf(this.#context).ended;
  }

  addEventListener(type: "abort", listener: EndListener): void {
    // A second listener, of a call that is forwarded twice concurrently.
    if (!requestOf(this.#context).whenEnded(listener)) this.#context.signal.addEventListener(type, listener);
  }

  removeEventListener(type: "abort", listener: EndListener): void {
    if (!requestOf(this.#context).removeEndListener(listener)) this.#context.signal.removeEventListener(type, listener);
  }
}
