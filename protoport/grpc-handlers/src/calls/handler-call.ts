import { captureRejectionSymbol } from "node:events";
import { Duplex } from "node:stream";
import { type Metadata, type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";
import type { AnyDefinition } from "./base-call.ts";
import { type CallStatus, okStatus, statusOf } from "./status.ts";

/** The functions that a handler's call object needs from the call. */
interface CallOwner {
  /** Creates the request's metadata on demand, because few handlers read the metadata. */
  readMetadata(): Metadata;
  /** Ends the call after an exception in the handler's listener. */
  failListener(event: string | symbol, error: unknown): void;
  /** Whether the call has ended. */
  readonly isClosed: boolean;
}

/** The arguments for a handler's call object. */
export interface HandlerCallInit {
  readonly definition: AnyDefinition;
  readonly call: ServerInterceptingCallInterface;
  readonly owner: CallOwner;
  /** The client's only message, or `undefined` if the client streams. */
  readonly request: unknown;
  readonly exposesMessages: boolean;
}

/**
 * The call object for a stream handler: `ServerReadableStream`, `ServerWritableStream` or `ServerDuplexStream`.
 *
 * One class implements the three interfaces, although a `ServerReadableStream` is not writable in grpc-js.
 */
export class HandlerCall extends Duplex {
  /** Whether the client, the deadline or a shutdown ended the call before the handler sent a status. */
  cancelled = false;
  readonly request: unknown;
  readonly #owner: CallOwner;
  readonly #definition: AnyDefinition;
  readonly #call: ServerInterceptingCallInterface;
  readonly #exposesMessages: boolean;
  #failure: CallStatus | undefined;
  #trailer: Metadata | undefined;
  #isReleased = false;

  static {
    // Without this function, the rejection of an async listener would exit the process.
    Object.defineProperty(this.prototype, captureRejectionSymbol, {
      value(this: HandlerCall, error: unknown, event: string | symbol): void {
        this.#owner.failListener(event, error);
      },
    });
  }

  constructor({ definition, call, owner, request, exposesMessages }: HandlerCallInit) {
    const options = {
      objectMode: true,
      readable: definition.requestStream,
      // Buffers one message, because messages can be large. Flow control delays further messages.
      readableHighWaterMark: 1,
      // Destroyed when the call ends. With autoDestroy, the end of a `for await` loop would prevent a response.
      autoDestroy: false,
      captureRejections: true,
    };
    super(options);
    this.#owner = owner;
    this.request = request;
    this.#definition = definition;
    this.#call = call;
    this.#exposesMessages = exposesMessages;
    this.on("error", (error: unknown) => {
      if (this.destroyed && isEarlyLoopEnd(error) && (!definition.responseStream || owner.isClosed)) return;
      this.#failure ??= statusOf(error, undefined, this.#exposesMessages);
      // The status is sent here, because a destroyed or failed stream never finishes.
      if (this.destroyed || this.errored !== null) this.#call.sendStatus(this.#failure);
      else super.end();
    });
  }

  /** Catches exceptions in listeners, because Node calls most listeners outside the handler. */
  override emit(event: string | symbol, ...values: readonly unknown[]): boolean {
    try {
      return super.emit(event, ...values);
    } catch (error) {
      this.#owner.failListener(event, error);
      return true;
    }
  }

  get metadata(): Metadata {
    return this.#owner.readMetadata();
  }

  getPeer(): string {
    return this.#call.getPeer();
  }

  sendMetadata(metadata: Metadata): void {
    this.#call.sendMetadata(metadata);
  }

  getDeadline(): ReturnType<ServerInterceptingCallInterface["getDeadline"]> {
    return this.#call.getDeadline();
  }

  getPath(): string {
    return this.#definition.path;
  }

  getHost(): string {
    return this.#call.getHost();
  }

  getAuthContext(): ReturnType<ServerInterceptingCallInterface["getAuthContext"]> {
    return this.#call.getAuthContext();
  }

  getMetricsRecorder(): ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]> {
    return this.#call.getMetricsRecorder();
  }

  /** Sends the remaining messages, and then the status. */
  override end(trailer?: unknown): this {
    if (isMetadata(trailer)) this.#trailer = trailer;
    return super.end();
  }

  override _read(): void {
    this.#call.startRead();
  }

  override _write(message: unknown, _encoding: string, sent: () => void): void {
    this.#call.sendMessage(message, sent);
  }

  override _final(done: () => void): void {
    done();
    this.#call.sendStatus(this.#failure ?? okStatus(this.#trailer));
  }

  /** Destroys the stream when its call has ended with a status. */
  release(): void {
    this.#isReleased = true;
    this.destroy();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Otherwise, the call would last until its deadline. Handlers with a callback can still respond.
    if (error === null && this.#definition.responseStream && !this.#isReleased) {
      this.#call.sendStatus({ code: status.CANCELLED, details: "the handler destroyed its stream" });
    }
    done(error);
  }
}

/** Recognizes `Metadata`, including `Metadata` from another grpc-js copy. */
function isMetadata(value: unknown): value is Metadata {
  return typeof value === "object" && value !== null && "toHttp2Headers" in value;
}

/**
 * Returns whether a `for await` loop over the requests has destroyed the stream, because the loop stopped early. If the
 * handler has a callback, it can still respond. If the handler's exception stopped the loop, the exception is reported.
 */
function isEarlyLoopEnd(error: unknown): boolean {
  // An AbortError of a signal has the signal's reason as its cause.
  return error instanceof Error && "code" in error && error.code === "ABORT_ERR" && error.cause === undefined;
}
