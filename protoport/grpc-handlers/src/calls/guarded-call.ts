import { type Metadata, type ServerInterceptingCallInterface, ServerInterceptingCall } from "@grpc/grpc-js";
import type { BaseCall, CallListener } from "./base-call.ts";
import type { CallStatus } from "./status.ts";

/** A call that passes through an interceptor. An exception in the interceptor ends the call, not the process. */
export class GuardedCall extends ServerInterceptingCall {
  readonly #call: ServerInterceptingCallInterface;
  readonly #base: BaseCall;

  constructor(call: ServerInterceptingCallInterface, base: BaseCall) {
    super(call);
    this.#call = call;
    this.#base = base;
  }

  override start(listener: CallListener): void {
    this.#call.start(listener);
  }

  override sendMetadata(metadata: Metadata): void {
    this.#guard(() => this.#call.sendMetadata(metadata));
  }

  override sendMessage(message: unknown, sent: () => void): void {
    this.#guard(() => this.#call.sendMessage(message, sent));
  }

  override sendStatus(end: CallStatus): void {
    this.#guard(() => this.#call.sendStatus(end));
  }

  #guard(send: () => void): void {
    try {
      send();
    } catch (error) {
      this.#base.failInterceptor(error);
    }
  }
}
