import { captureRejectionSymbol, EventEmitter } from "node:events";
import type { Metadata, ServerInterceptingCallInterface } from "@grpc/grpc-js";
import type { HandlerCallInit } from "./handler-call.ts";
import { statusOf } from "./status.ts";

/**
 * The call object for a unary handler, used as `ServerUnaryCall`. The object is not a stream, because creating and
 * ending a stream would take as long as the rest of the call.
 */
export class UnaryHandlerCall extends EventEmitter {
  /** Whether the client, the deadline or a shutdown ended the call before the handler sent a status. */
  cancelled = false;
  readonly request: unknown;
  readonly #init: HandlerCallInit;

  static {
    // Without this function, the rejection of an async listener would exit the process.
    Object.defineProperty(this.prototype, captureRejectionSymbol, {
      value(this: UnaryHandlerCall, error: unknown, event: string | symbol): void {
        this.#init.owner.failListener(event, error);
      },
    });
  }

  constructor(init: HandlerCallInit) {
    super({ captureRejections: true });
    this.request = init.request;
    this.#init = init;
  }

  /** Handles `error` events here, so that a call needs no listener. */
  override emit(event: string | symbol, ...values: readonly unknown[]): boolean {
    if (event !== "error") return super.emit(event, ...values);
    const { call, exposesMessages } = this.#init;
    call.sendStatus(statusOf(values[0], undefined, exposesMessages));
    if (this.listenerCount(event) > 0) super.emit(event, ...values);
    return true;
  }

  get metadata(): Metadata {
    return this.#init.owner.readMetadata();
  }

  getPeer(): string {
    return this.#init.call.getPeer();
  }

  sendMetadata(metadata: Metadata): void {
    this.#init.call.sendMetadata(metadata);
  }

  getDeadline(): ReturnType<ServerInterceptingCallInterface["getDeadline"]> {
    return this.#init.call.getDeadline();
  }

  getPath(): string {
    return this.#init.definition.path;
  }

  getHost(): string {
    return this.#init.call.getHost();
  }

  getAuthContext(): ReturnType<ServerInterceptingCallInterface["getAuthContext"]> {
    return this.#init.call.getAuthContext();
  }

  getMetricsRecorder(): ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]> {
    return this.#init.call.getMetricsRecorder();
  }
}
