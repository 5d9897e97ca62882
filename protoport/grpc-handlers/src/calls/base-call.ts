import type { Message } from "@bufbuild/protobuf";
import { type Metadata, type MethodDefinition, type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";
import { type Caller, Envelope, type ForwardedMessage, toFault } from "@protoport/gateway/forward";
import type { PlainConverter } from "@protoport/gateway/messages";
import { appendMetadata, toMetadata } from "./metadata.ts";
import type { CallResponse } from "./response.ts";
import { type CallStatus, handlerFailure, statusToConnectError } from "./status.ts";

/** The object that receives a call's events: the listener in grpc-js, or an interceptor. */
export type CallListener = Parameters<ServerInterceptingCallInterface["start"]>[0];

type HandlerFailure = Parameters<typeof toFault>[1];

const interceptorFailure: HandlerFailure = {
  errorCode: "ERR_HANDLER_FAILED",
  what: "an interceptor of grpc-js failed",
};

/** A method in a service definition. */
// oxlint-disable-next-line typescript/no-explicit-any -- the type from grpc-js for methods with unknown messages.
export type AnyDefinition = MethodDefinition<any, any>;

/** The functions that read and write a method's messages. */
export interface MethodCodec {
  readonly definition: AnyDefinition;
  readonly readRequest: (message: ForwardedMessage) => unknown;
  readonly writeResponse: (value: unknown) => Envelope;
  /** Converts a response without writing it in binary, or returns `undefined` if the result is not certain. */
  readonly toMessage: PlainConverter | undefined;
}

/** A gateway call with the interface of a grpc-js server call, which interceptors and handlers' call objects use. */
export class BaseCall implements ServerInterceptingCallInterface {
  /**
   * The resource that is closed once, when the call has ended for any reason. The resource is not a closure, because
   * closures of finished calls survived until the next full garbage collection, which doubled a call's cost.
   */
  resource: { close(): void } | undefined;
  readonly #method: MethodCodec;
  readonly #caller: Caller;
  readonly #response: CallResponse;
  readonly #requests: AsyncIterator<ForwardedMessage> | undefined;
  #request: Envelope | undefined;
  readonly #deadline: number;
  #listener: CallListener | undefined;
  #recorder: MetricsRecorder | undefined;
  #hasHeader = false;
  #isReading = false;
  #isEnded = false;
  /** Whether the call ended with a status from its handler or an interceptor. */
  #hasStatus = false;

  /** @param requests - the only request message, or the request messages as they arrive */
  constructor(
    method: MethodCodec,
    caller: Caller,
    requests: Envelope | AsyncIterable<ForwardedMessage>,
    response: CallResponse,
  ) {
    const timeoutMs = caller.timeoutMs();
    this.#method = method;
    this.#caller = caller;
    this.#response = response;
    if (requests instanceof Envelope) this.#request = requests;
    else this.#requests = requests[Symbol.asyncIterator]();
    this.#deadline = timeoutMs === undefined ? Infinity : Date.now() + timeoutMs;
  }

  start(listener: CallListener): void {
    if (this.listen(listener)) listener.onReceiveMetadata(this.readMetadata());
  }

  /**
   * Starts the call without passing the metadata to the listener, because few handlers read the metadata. Returns
   * `false` if the call was already cancelled.
   */
  listen(listener: CallListener): boolean {
    const { signal } = this.#caller;
    this.#listener = listener;
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this);
    return !this.#isEnded;
  }

  readMetadata(): Metadata {
    return toMetadata(this.#caller.headers.requestHeader);
  }

  /** Called at the call's deadline, or when the client disconnects. Ends the call without a handler's status. */
  handleEvent(): void {
    this.#fail(this.#caller.signal.reason);
  }

  sendMetadata(metadata: Metadata): void {
    if (this.#hasHeader || this.#isEnded) return;
    this.#hasHeader = true;
    appendMetadata(this.#caller.headers.responseHeader, metadata);
    this.#caller.begin();
  }

  sendMessage(value: unknown, callback: () => void): void {
    if (this.#isEnded) return;
    this.#hasHeader = true;
    let message: Envelope | Message;
    try {
      const converted = this.#caller.acceptsMessages ? this.#method.toMessage?.(value) : undefined;
      message = converted ?? this.#method.writeResponse(value);
    } catch (fault) {
      return this.sendStatus({ code: status.INTERNAL, details: "Error serializing response", fault });
    }
    this.#response.send(message, callback);
  }

  sendStatus(end: CallStatus): void {
    if (this.#isEnded) {
      // Once the status is sent, a fault can only be reported. After a cancellation, faults are expected.
      if (this.#hasStatus && "fault" in end) this.report(end.fault, handlerFailure);
      return;
    }
    this.#hasStatus = true;
    this.#end();
    try {
      if (end.code !== status.OK) return this.#response.fail(statusToConnectError(end));
      appendMetadata(this.#caller.headers.responseTrailer, end.metadata);
      this.#response.end();
    } catch (error) {
      // `appendMetadata` throws, for example, if the handler's metadata is not a `Metadata`.
      this.#response.fail(error);
    }
  }

  startRead(): void {
    if (this.#isReading || this.#isEnded) return;
    if (this.#requests === undefined) return this.#readOnly();
    this.#isReading = true;
    this.#requests.next().then(
      ({ done, value }) => {
        this.#isReading = false;
        if (done === true) this.#receiveEnd();
        else this.#receive(value);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  getPeer(): string {
    const { address, port } = this.#caller.request.peer;
    if (address === "") return "unknown";
    return port === 0 ? address : `${address}:${port}`;
  }

  getDeadline(): number {
    return this.#deadline;
  }

  getHost(): string {
    return this.#caller.request.origin.replace(/^\w+:\/\//, "");
  }

  getAuthContext(): ReturnType<ServerInterceptingCallInterface["getAuthContext"]> {
    return {};
  }

  getConnectionInfo(): ReturnType<ServerInterceptingCallInterface["getConnectionInfo"]> {
    const { address, port } = this.#caller.request.peer;
    return { remoteAddress: address, remotePort: port };
  }

  getMetricsRecorder(): ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]> {
    this.#recorder ??= new MetricsRecorder();
    // The grpc-js class has a private member, so no other class can have the same type.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return this.#recorder as unknown as ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]>;
  }

  /** Reports a fault that cannot be sent to the client. */
  report(error: unknown, failure: HandlerFailure): void {
    this.#caller.request.report(error, failure);
  }

  /** Ends the call after an exception in an interceptor, or reports the exception if the call has ended. */
  failInterceptor(error: unknown): void {
    if (this.#isEnded) this.report(error, interceptorFailure);
    else this.#fail(toFault(error, interceptorFailure));
  }

  /** Delivers the only request message at the first call, and the end of the requests at the second call. */
  #readOnly(): void {
    const request = this.#request;
    this.#request = undefined;
    if (request === undefined) this.#receiveEnd();
    else this.#receive(request);
  }

  #receive(message: ForwardedMessage): void {
    if (this.#isEnded) return;
    let value: unknown;
    try {
      value = this.#method.readRequest(message);
    } catch (error) {
      return this.#fail(error);
    }
    try {
      this.#listener?.onReceiveMessage(value);
    } catch (error) {
      this.failInterceptor(error);
    }
  }

  #receiveEnd(): void {
    if (this.#isEnded) return;
    try {
      this.#listener?.onReceiveHalfClose();
    } catch (error) {
      this.failInterceptor(error);
    }
  }

  /** Ends the call with an error that the handler has not thrown. */
  #fail(error: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#listener?.onCancel();
    } catch (thrown) {
      // The exception is only reported, because the client already gets a status for the call's failure.
      this.report(thrown, interceptorFailure);
    }
    this.#end();
    this.#response.fail(error);
  }

  #end(): void {
    this.#isEnded = true;
    this.#request = undefined;
    this.#caller.signal.removeEventListener("abort", this);
    this.resource?.close();
  }
}

type GrpcJsRecorder = ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]>;

/** Discards a call's metrics, as grpc-js does by default. */
class MetricsRecorder implements Record<keyof GrpcJsRecorder, () => unknown> {
  recordRequestCostMetric(): void {}
  recordUtilizationMetric(): void {}
  recordNamedMetric(): void {}
  recordCPUUtilizationMetric(): void {}
  recordMemoryUtilizationMetric(): void {}
  recordApplicationUtilizationMetric(): void {}
  recordQpsMetric(): void {}
  recordEpsMetric(): void {}

  serialize(): Buffer {
    return Buffer.alloc(0);
  }
}
