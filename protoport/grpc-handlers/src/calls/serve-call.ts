import { captureRejectionSymbol, EventEmitter } from "node:events";
import {
  type Metadata,
  type sendUnaryData,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from "@grpc/grpc-js";
import type { PlainConverter } from "@protoport/gateway/messages";
import type { AnyDefinition, BaseCall, CallListener } from "./base-call.ts";
import { HandlerCall, type HandlerCallInit } from "./handler-call.ts";
import { type CallStatus, okStatus, statusOf } from "./status.ts";
import type { EncodeMessage } from "./write-response.ts";

/** The members that the call objects for all four call types have. */
type AnyHandlerCall = EventEmitter & Pick<UnaryHandlerCall, "cancelled" | "getPath">;

/** A handler for any kind of method. */
export type AnyHandler = (call: AnyHandlerCall, callback?: sendUnaryData<unknown>) => unknown;

/** A method, its handler, and the options for serving its calls. */
export interface ServedMethod {
  readonly definition: AnyDefinition;
  readonly handler: AnyHandler;
  readonly interceptors: readonly ServerInterceptor[];
  readonly exposesMessages: boolean;
  /** Writes the method's responses. By default, the definition's `responseSerialize` writes them. */
  readonly encode: EncodeMessage | undefined;
  readonly toMessage: PlainConverter | undefined;
}

/** Runs a call's interceptors and its handler. */
export function serveHandlerCall(base: BaseCall, method: ServedMethod): void {
  const { definition, interceptors } = method;
  if (interceptors.length === 0) {
    const running = new RunningCall(base, method, base);
    base.resource = running;
    if (base.listen(running)) running.begin();
    return;
  }
  const intercepted = interceptors.reduce<ServerInterceptingCallInterface>(
    (call, interceptor) => new GuardedCall(interceptor(definition, call), base),
    base,
  );
  const running = new RunningCall(intercepted, method, base);
  base.resource = running;
  intercepted.start(running);
}

/** Collects the events that a handler needs to start, and passes on later events. */
class RunningCall implements CallListener {
  readonly #call: ServerInterceptingCallInterface;
  readonly #method: ServedMethod;
  readonly #base: BaseCall;
  #metadata: Metadata | undefined;
  #hasBegun = false;
  #request: { readonly message: unknown } | undefined;
  #handlerCall: AnyHandlerCall | undefined;
  /** The handler's call object, if the call is a stream. */
  #stream: HandlerCall | undefined;
  #hasCalledBack = false;
  #isClosed = false;

  constructor(call: ServerInterceptingCallInterface, method: ServedMethod, base: BaseCall) {
    this.#call = call;
    this.#method = method;
    this.#base = base;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.#metadata = metadata;
    this.begin();
  }

  /** Starts the call. Without interceptors, the call's metadata is created only if the handler reads the metadata. */
  begin(): void {
    this.#hasBegun = true;
    if (this.#method.definition.requestStream) this.#run();
    else this.#call.startRead();
  }

  onReceiveMessage(message: unknown): void {
    if (this.#method.definition.requestStream) return void this.#stream?.push(message);
    if (this.#request !== undefined) return this.#refuse("the client sent more than one message");
    this.#request = { message };
    this.#call.startRead();
  }

  onReceiveHalfClose(): void {
    if (this.#method.definition.requestStream) this.#stream?.push(null);
    else if (this.#request === undefined || !this.#hasBegun) this.#refuse("the message is missing");
    else this.#run();
  }

  onCancel(): void {
    const call = this.#handlerCall;
    if (call === undefined) return;
    call.cancelled = true;
    process.nextTick(() => {
      try {
        call.emit("cancelled", "cancelled");
      } catch (error) {
        // In grpc-js, an exception in this listener would exit the process.
        this.failListener("cancelled", error);
      }
    });
  }

  /** Releases the handler's call object once the call has ended and the call object has emitted its last events. */
  close(): void {
    this.#isClosed = true;
    if (this.#stream !== undefined) process.nextTick(() => this.#stream?.release());
  }

  readMetadata(): Metadata {
    return (this.#metadata ??= this.#base.readMetadata());
  }

  failListener(event: string | symbol, error: unknown): void {
    if (!this.#isClosed) return this.#fail(error);
    this.#base.report(error, { errorCode: "ERR_HANDLER_FAILED", what: `a listener of "${String(event)}" failed` });
  }

  #run(): void {
    // An interceptor may pass on events after its call has ended.
    if (this.#isClosed) return;
    const { definition, handler, exposesMessages } = this.#method;
    const request = this.#request?.message;
    const init = { definition, call: this.#call, owner: this, request, exposesMessages };
    if (definition.requestStream || definition.responseStream) this.#stream = new HandlerCall(init);
    const call = (this.#handlerCall = this.#stream ?? new UnaryHandlerCall(init));
    try {
      // As in grpc-js, handlers of response streams get no callback. Wrappers detect the RPC type by the callback.
      const returned = definition.responseStream ? handler(call) : handler(call, this.#respond);
      // Without a `catch`, an async handler's rejection would exit the process.
      if (returned instanceof Promise) returned.catch((error: unknown) => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  readonly #respond: sendUnaryData<unknown> = (error, value, trailer) => {
    if (this.#hasCalledBack) return;
    this.#hasCalledBack = true;
    if (error) this.#call.sendStatus(statusOf(error, trailer, this.#method.exposesMessages));
    else this.#call.sendMessage(value, () => this.#call.sendStatus(okStatus(trailer)));
  };

  // Sends the same status as grpc-js, which does not expose the code of an exception.
  #fail(thrown: unknown): void {
    if (this.#isClosed && isPrematureClose(thrown)) return;
    const message = messageOfThrown(thrown);
    const { details } = statusOf({ message }, undefined, this.#method.exposesMessages);
    const end: CallStatus = { code: status.UNKNOWN, details, fault: thrown };
    this.#call.sendStatus(end);
  }

  // A call with too few or too many messages is unimplemented (gRPC, "Status codes").
  #refuse(details: string): void {
    this.#call.sendStatus({ code: status.UNIMPLEMENTED, details });
  }
}

/** Returns whether an error was thrown by a `for await` loop over a closed stream. */
function isPrematureClose(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ERR_STREAM_PREMATURE_CLOSE";
}

/** Returns an error message, or an empty string if its getter throws. An exception here would exit the process. */
function messageOfThrown(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : "";
  } catch {
    return "";
  }
}

/**
 * The call object for a unary handler, used as `ServerUnaryCall`. The object is not a stream, because creating and
 * ending a stream would take as long as the rest of the call.
 */
class UnaryHandlerCall extends EventEmitter {
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

/** A call that passes through an interceptor. An exception in the interceptor ends the call, not the process. */
class GuardedCall extends ServerInterceptingCall {
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
